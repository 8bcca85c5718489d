# frozen_string_literal: true

require "socket"
require "tmpdir"

RSpec.describe "The scheduler's fairness" do
  # More than a fiber may do in one time slice: tokio, whose budget is the model, allows 128.
  let(:operations) { 200 }

  # Runs that many fibers. Each calls the block again and again without ever having to wait. Returns how many fibers had
  # run when the first one finished.
  def begun_before_first_is_finished(fibers)
    start = Queue.new
    begun = 0
    at_first_end = nil
    Heddle.run do
      fibers.times do |i|
        Fiber.schedule do
          start.pop
          begun += 1
          operations.times { yield i }
          at_first_end ||= begun
        end
      end
      start.close
    end
    at_first_end
  end

  it "runs each of 500 fibers that write to files before one of them finishes" do
    Dir.mktmpdir("heddle") do |directory|
      files = Array.new(500) { |i| File.new(File.join(directory, i.to_s), "w").tap { |file| file.sync = true } }

      expect(begun_before_first_is_finished(500) { |i| files[i].write("x") }).to eq(500)
    ensure
      files&.each(&:close)
    end
  end

  it "runs each of 100 fibers that read from a device before one of them finishes" do
    devices = Array.new(100) { File.new("/dev/zero") }

    expect(begun_before_first_is_finished(100) { |i| devices[i].readpartial(10) }).to eq(100)
  ensure
    devices&.each(&:close)
  end

  it "continues a fiber whose data has come before one whose sleep has ended meanwhile" do
    reader, writer = IO.pipe
    order = []
    Heddle.run(preempt: :none) do
      Fiber.schedule do
        reader.read(1)
        order << :read
      end
      writer.write("x")
      Fiber.schedule do
        sleep(0.001) # at least
        order << :slept
      end
      # Until the sleep is over.
      compute_for(0.002)
    end

    expect(order).to eq(%i[read slept])
  ensure
    [reader, writer].each(&:close)
  end

  it "continues a fiber whose sleep has ended before most of those that are woken with it and then compute" do
    reader, writer = IO.pipe
    order = []
    Heddle.run(preempt: :none) do
      64.times do |i|
        Fiber.schedule do
          reader.wait_readable
          # Between two reads of the clock, as there are no ticks.
          compute_for(0.001)
          order << i
        end
      end
      # All wait in the kernel now, and are woken at once.
      sleep(a_moment)
      Fiber.schedule do
        sleep(0.001) # at least
        order << :slept
      end
      writer.write("x")
      # Until the sleep is over.
      compute_for(0.002)
    end

    expect(order.index(:slept)).to be < 32
  ensure
    [reader, writer].each(&:close)
  end

  it "continues a fiber that starts another one, which computes for long, when that one yields" do
    order = []
    Heddle.run(preempt: :none) do
      Fiber.schedule do
        # For longer than fibers that are started run ahead of woken ones.
        compute_for(0.002)
        Fiber.scheduler.yield
        order << :started
      end
      order << :starter
    end

    expect(order).to eq(%i[starter started])
  end

  it "runs the other fibers between a request and its response, even if the response is there already" do
    pair = UNIXSocket.pair
    asking, answering = pair
    events = []
    Heddle.run do
      answering.write("answer")
      Fiber.schedule do
        Fiber.schedule do
          sleep(0)
          events << "another fiber"
        end
        asking.write("question")
        events << asking.readpartial(6)
      end
    end
    expect(events).to eq ["another fiber", "answer"]
  ensure
    pair&.each(&:close)
  end

  it "runs each of 200 fibers that echo on ready sockets before one of them finishes" do
    pairs = Array.new(200) { UNIXSocket.pair }
    echo = lambda do |i|
      left, right = pairs[i]
      left.write("x")
      right.readpartial(1)
    end

    expect(begun_before_first_is_finished(200, &echo)).to eq(200)
  ensure
    pairs&.flatten&.each(&:close)
  end

  it "runs each of the fibers that wait for IOs that are ready" do
    pairs = Array.new(20) { UNIXSocket.pair.tap { |_, right| right.write("x") } }

    expect(begun_before_first_is_finished(20) { |i| pairs[i].first.wait_readable(60) }).to eq(20)
  ensure
    pairs&.flatten&.each(&:close)
  end

  it "runs each of the fibers that call IO.select on ready IOs" do
    pairs = Array.new(20) { UNIXSocket.pair.tap { |_, right| right.write("x") } }

    expect(begun_before_first_is_finished(20) { |i| IO.select([pairs[i].first], [], [], 60) }).to eq(20)
  ensure
    pairs&.flatten&.each(&:close)
  end

  it "gives a new fiber as many operations in its first slice, whatever its starter has done in the same slice" do
    forced_yields = -> { Fiber.scheduler.stats.dig(:run_queue, :budget_forced_yield_count) }
    counts = IO.pipe do |reader, writer|
      writer.write("x")
      operation = -> { IO.select([reader], nil, nil, 0) }
      Heddle.run do
        [0, 20, 31].map do |before|
          sleep 0
          before.times { operation.call }
          count = nil
          Fiber.schedule do
            yields = forced_yields.call
            count = (1..).find { operation.call && forced_yields.call > yields }
          end
          sleep 0 until count
          count
        end
      end
    end
    expect(counts.uniq.size).to eq(1)
  end

  it "runs all fibers about equally often" do
    counts = Array.new(50, 0)
    Heddle.run do
      done = false
      counts.each_index do |i|
        Fiber.schedule do
          until done
            counts[i] += 1
            sleep(0)
            done ||= counts[i] == 1000
          end
        end
      end
    end

    # The first fiber has run already while the others were scheduled.
    expect(counts.minmax).to match([a_value >= 900, 1000])
  end

  describe "beside fibers that are always runnable" do
    # Runs two fibers that do nothing but yield, until the block has finished in a third fiber. If that fiber never
    # gets its event, the example hangs.
    def beside_busy_fibers
      result = nil
      Heddle.run do
        2.times { Fiber.schedule { sleep(0) until result } }
        Fiber.schedule { result = yield }
      end
      result
    end

    it "lets a timer expire" do
      expect(beside_busy_fibers { sleep(a_moment) && :woken }).to eq(:woken)
    end

    it "lets timers expire in their order" do
      expect(beside_busy_fibers { overtaken_sleeps([0.03, 0.01, 0.02]) }).to eq(0)
    end

    it "lets a fiber read what a thread writes" do
      IO.pipe do |reader, writer|
        thread = Thread.new { writer.write("x") }

        expect(beside_busy_fibers { reader.readpartial(10) }).to eq("x")
      ensure
        thread.join
      end
    end

    it "lets a server and its client exchange data" do
      answer = beside_busy_fibers do
        TCPServer.open("127.0.0.1", 0) do |server|
          Fiber.schedule { server.accept.tap { |socket| socket.write(socket.gets) }.close }
          TCPSocket.open("127.0.0.1", server.local_address.ip_port) do |client|
            client.puts("hello")
            client.read
          end
        end
      end

      expect(answer).to eq("hello\n")
    end

    it "lets a fiber wait for a process" do
      expect(beside_busy_fibers { Process.wait2(Process.spawn("exit 5")).last.exitstatus }).to eq(5)
    end

    it "lets a fiber resolve a host name" do
      expect(beside_busy_fibers { Addrinfo.ip("localhost").ip? }).to be(true)
    end

    it "lets another thread wake a fiber" do
      queue = Queue.new
      thread = Thread.new { queue << :woken }

      expect(beside_busy_fibers { queue.pop }).to eq(:woken)
    ensure
      thread.join
    end

    it "lets a time limit expire" do
      result = beside_busy_fibers do
        Timeout.timeout(0.01) { sleep }
      rescue Timeout::Error
        :interrupted
      end

      expect(result).to eq(:interrupted)
    end
  end

  it "lets a timer expire beside a fiber whose reads always succeed" do
    woken = false
    Heddle.run do
      Fiber.schedule { File.open("/dev/zero") { |zero| zero.readpartial(1) until woken } }
      Fiber.schedule { woken = true if sleep(a_moment) }
    end

    expect(woken).to be(true)
  end

  it "lets a reader continue beside a fiber whose writes always succeed" do
    text = nil
    IO.pipe do |reader, writer|
      thread = nil
      Heddle.run do
        Fiber.schedule do
          File.open(File::NULL, "w") do |null|
            null.sync = true
            null.write("x") until text
          end
        end
        Fiber.schedule { text = reader.gets }
        thread = Thread.new { writer.puts("from a thread") }
      end
      thread.join
    end

    expect(text).to eq("from a thread\n")
  end

  it "lets a timer expire beside two fibers that wake each other" do
    done = false
    Heddle.run do
      ping = Queue.new
      pong = Queue.new
      Fiber.schedule { pong << ping.pop until done }
      Fiber.schedule do
        until done
          ping << true
          pong.pop
        end
        ping << true
      end
      Fiber.schedule { done = true if sleep(a_moment) }
    end

    expect(done).to be(true)
  end

  it "lets a timer expire beside fibers that schedule fibers without end" do
    done = false
    Heddle.run do
      breed = -> { Fiber.schedule { sleep(0) && breed.call } unless done }
      breed.call
      Fiber.schedule { done = true if sleep(a_moment) }
    end

    expect(done).to be(true)
  end

  it "lets a server accept beside a connection that never pauses" do
    served = nil
    Heddle.run do
      server = TCPServer.new("127.0.0.1", 0)
      port = server.local_address.ip_port
      Fiber.schedule do
        2.times do
          socket = server.accept
          Fiber.schedule do
            IO.copy_stream(socket, socket)
          ensure
            socket.close
          end
        end
        server.close
      end
      Fiber.schedule do
        TCPSocket.open("127.0.0.1", port) { |busy| busy.write("x") && busy.readpartial(1) until served }
      end
      Fiber.schedule do
        TCPSocket.open("127.0.0.1", port) do |client|
          client.puts("me, too")
          served = client.gets
        end
      end
    end

    expect(served).to eq("me, too\n")
  end
end
