# frozen_string_literal: true

require "digest"
require "net/http"
require "securerandom"
require "socket"
require "websocket/driver"

module Soak
  # A client of a kind, on a thread: asks again and again, and checks each answer.
  class Client
    attr_reader :answers, :wrong

    # @param port [Integer] of the server
    # @param pause [Float] seconds between two questions
    def initialize(port, pause)
      @port = port
      @pause = pause
      @answers = 0
      @wrong = []
      @thread = Thread.new { ask_and_check until @ended }
    end

    def end
      @ended = true
      @thread.join
      close
    end

    private

    def ask_and_check
      answered, expected = ask
      return @answers += 1 if answered == expected

      @wrong << "#{answered.inspect[0, 200]} instead of #{expected.inspect[0, 200]}"
    rescue StandardError => e
      @wrong << e.full_message(highlight: false)[0, 500]
      close
    ensure
      sleep(@pause)
    end

    def get(path) = http.get(path).body
    def number = @number = (@number || 0) + 1
    def http = @http ||= Net::HTTP.start("127.0.0.1", @port, read_timeout: 60)

    def close
      @http&.finish
    rescue IOError
      # It was not open any more.
    ensure
      @http = nil
    end
  end

  # A fast page, on a connection that stays.
  class Hello < Client
    def ask = [get("/hello?#{number}"), "hello #{@number}"]
  end

  # A page that computes for some 20 ms.
  class Compute < Client
    def ask = [get("/compute"), "500000"]
  end

  # A page that waits, on a new connection each time.
  class Wait < Client
    def ask = [get("/wait?#{number}"), "waited #{@number}"].tap { close }
  end

  # A page that queries a database.
  class Query < Client
    def ask = [get("/query?#{number}"), (@number * 2).to_s]
  end

  # An upload of up to 200 KB.
  class Upload < Client
    def ask
      body = Random.bytes(rand(200_000))
      [http.post("/upload", body).body, Digest::SHA256.hexdigest(body)]
    end
  end

  # A WebSocket that is closed after 20 messages, by its end or, each second time, without a word.
  class WebSockets < Client
    MESSAGES = 20

    attr_reader :url

    def write(data) = @socket.write(data)

    private

    def ask
      sent = Array.new(MESSAGES) { SecureRandom.hex(rand(2000)) }
      @got = []
      open
      sent.each_with_index { |message, index| @driver.text(message) && receive(index + 1) }
      @driver.close if number.even?
      [@got, sent]
    ensure
      @socket&.close
    end

    def open
      @url = "ws://127.0.0.1:#{@port}/socket"
      @socket = TCPSocket.new("127.0.0.1", @port)
      @driver = WebSocket::Driver.client(self)
      @driver.on(:message) { |message| @got << message.data }
      @driver.start
    end

    def receive(count)
      @driver.parse(@socket.readpartial(65_536)) until @got.size == count
    end
  end

  # A client that goes away: in the middle of its request, before its answer, or by a reset.
  class Aborted < Client
    REQUESTS = ["GET /hel", "GET /wait?1 HTTP/1.1\r\nhost: soak\r\n\r\n",
                "POST /upload HTTP/1.1\r\nhost: soak\r\ncontent-length: 100000\r\n\r\nhalf"].freeze

    private

    def ask
      socket = TCPSocket.new("127.0.0.1", @port)
      socket.setsockopt(Socket::SOL_SOCKET, Socket::SO_LINGER, [1, 0].pack("ii")) if number.odd?
      socket.write(REQUESTS[@number % REQUESTS.size])
      sleep(rand / 20)
      [nil, socket.close]
    end
  end
end
