# frozen_string_literal: true

require "English"
RSpec.describe "Puma with plugin :heddle, when it is told to stop" do
  include PumaServers

  # Seconds for the answers of requests that a shutdown has ended: five if nobody says more.
  long_grace = "@options[:pool_shutdown_grace_time] = #{PumaServer::LIMIT}"

  app = <<~'RUBY'
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/pid" then [200, {}, [Process.pid.to_s]]
      when "/slow"
        puts "slow has begun"
        sleep 0.001 until Thread.current.puma_server.shutting_down?
        [200, {}, ["slow"]]
      when "/endless"
        puts "endless has begun"
        begin
          sleep
        rescue Exception => e
          puts "raised: #{e.class}"
          raise
        end
      when "/stubborn"
        puts "stubborn has begun"
        begin
          sleep
        rescue Exception
          retry
        end
      when "/stray"
        Fiber.schedule { sleep }
        [200, {}, ["stray"]]
      else [200, {}, ["hello"]]
      end
    end)
  RUBY

  it "ends with the status of the signal when it has nothing to do" do
    with_server(app) do |server|
      server.signal(:TERM)

      expect(server.wait.termsig).to eq Signal.list["TERM"]
    end
  end

  it "answers the request under way first" do
    with_server(app) do |server|
      answer = Thread.new { server.get("/slow") }
      server.wait_for_log(/slow has begun/)
      server.signal(:TERM)
      server.wait

      expect(answer.value).to eq "slow"
    end
  end

  it "closes connections that wait for a request" do
    with_server(app) do |server|
      server.connect do |socket|
        socket.write("GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        socket.readpartial(1000)
        server.signal(:TERM)
        server.wait

        expect(socket.read).to eq ""
      end
    end
  end

  it "ends a request after force_shutdown_after, and answers 503" do
    with_server(app, "force_shutdown_after 0.1\n#{long_grace}") do |server|
      answer = Thread.new { server.request("GET /endless HTTP/1.0\r\n\r\n") }
      server.wait_for_log(/endless has begun/)
      server.signal(:TERM)
      server.wait

      expect([answer.value[9, 3], server.log]).to match ["503", /raised: Puma::ThreadPool::ForceShutdown/]
    end
  end

  it "ends although a request rescues every exception" do
    config = "force_shutdown_after 0.1\nheddle grace: 0.1\n" \
             "@options[:pool_shutdown_grace_time] = 0.1"
    with_server(app, config) do |server|
      client = Thread.new do
        server.request("GET /stubborn HTTP/1.0\r\n\r\n")
      rescue StandardError
        $ERROR_INFO
      end
      server.wait_for_log(/stubborn has begun/)
      server.signal(:TERM)

      expect([server.wait.termsig, client.join]).to match [Signal.list["TERM"], client]
    end
  end

  it "ends fibers that the application has left" do
    with_server(app) do |server|
      server.get("/stray")
      server.signal(:TERM)

      expect(server.wait.termsig).to eq Signal.list["TERM"]
    end
  end

  it "ends while all of its fibers are busy" do
    with_server(app, "force_shutdown_after 0.1\n#{long_grace}\nheddle fibers: 1") do |server|
      busy = Thread.new { server.request("GET /endless HTTP/1.0\r\n\r\n") }
      server.wait_for_log(/endless has begun/)
      # The kernel accepts the connection; no fiber is free to do so.
      server.connect do |waiting|
        waiting.write("GET / HTTP/1.0\r\n\r\n")
        server.signal(:TERM)

        expect([server.wait.termsig, busy.value[9, 3]]).to eq [Signal.list["TERM"], "503"]
      end
    end
  end

  it "starts anew at USR2" do
    with_server(app) do |server|
      server.signal(:USR2)
      server.wait_for_log(/Restarting.*Use Ctrl-C to stop/m)

      expect(server.get("/")).to eq "hello"
    end
  end

  it "replaces the workers of a cluster one by one at USR1" do
    with_server(app, "workers 1\n") do |server|
      before = server.get("/pid")
      server.signal(:USR1)
      server.wait_for_log(/Worker 0 .*phase: 1/)

      expect(server.get("/pid")).not_to eq before
    end
  end

  it "serves from workers that were forked after the application was loaded" do
    with_server(app, "workers 2\npreload_app!\n") do |server|
      server.wait_for_log(/Worker 1 .*booted/)
      workers = Array.new(20) { server.get("/pid") }.uniq

      expect(workers).not_to include server.pid.to_s
    end
  end
end
