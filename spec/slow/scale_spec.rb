# frozen_string_literal: true

require "socket"

RSpec.describe "A scheduler under load" do
  # Other descriptors of the process: those of Ruby, of the scheduler and of RSpec.
  spare = 200
  # A fiber's stack with its guard page needs two memory maps.
  maps_per_fiber = 2
  # More than the default size of the ring.
  more_than_a_ring = 5000

  def raise_file_limit
    hard = Process.getrlimit(:NOFILE).last
    Process.setrlimit(:NOFILE, hard, hard)
    hard
  end

  # The number of memory maps that a process may have, or nil without such a limit.
  def map_limit
    limit = "/proc/sys/vm/max_map_count"
    Integer(File.read(limit)) if File.readable?(limit)
  end

  def fibers_that_fit(wanted, maps_per_fiber, spare)
    map_limit ? [wanted, (map_limit / maps_per_fiber) - (spare * 10)].min : wanted
  end

  it "serves 10,000 idle connections, or as many as the file limit allows", timeout: 60 do
    wanted, served = in_child(timeout: 50) do
      count = [10_000, (raise_file_limit - spare) / 2].min
      servers, clients = Array.new(count) { UNIXSocket.pair }.transpose
      replies = Heddle.run do
        servers.each { |server| Fiber.schedule { server.write(server.readpartial(1)) } }
        clients.each { |client| client.write("x") }
        clients.count { |client| client.readpartial(1) == "x" }
      end
      [count, replies]
    end
    expect(served).to eq(wanted).and be > 100
  end

  it "serves an active connection among 10,000 idle ones, or as many as the file limit allows", timeout: 60 do
    heard, wakings = in_child(timeout: 50) do
      count = [10_000, (raise_file_limit - spare) / 2].min
      servers, clients = Array.new(count) { UNIXSocket.pair }.transpose
      wakings = 0
      heard = Queue.new
      line = Heddle.run do
        servers.each do |server|
          Fiber.schedule do
            bytes = server.read
            wakings += 1
            heard.push(bytes) unless bytes.empty?
          end
        end
        speaker = clients[count / 2]
        speaker.write("here")
        speaker.close
        heard.pop.tap { clients.each(&:close) }
      end
      [line, wakings == count]
    end
    expect([heard, wakings]).to eq ["here", true]
  end

  it "wakes 100,000 sleepers, or as many as the memory maps allow, and none early", timeout: 60 do
    count = fibers_that_fit(100_000, maps_per_fiber, spare)
    # A fresh process: the stacks of other examples' fibers would take the memory maps.
    output, errors, = run_ruby(<<~RUBY, timeout: 50)
      require "heddle"
      # Otherwise a fast machine warns: it starts all fibers before the first one ends.
      Heddle.const_get(:FiberBody).assume_map_limit(1 << 30)
      woken = 0
      early = 0
      clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
      Heddle.run do
        #{count}.times do |number|
          Fiber.schedule do
            due = clock.call + (time = 0.1 + ((number % 100) * 0.001))
            sleep(time)
            woken += 1
            early += 1 if clock.call < due
          end
        end
      end
      p [woken, early]
    RUBY
    expect([output, errors]).to eq ["#{[count, 0]}\n", ""]
  end

  describe "with few memory maps left" do
    before { skip "needs a limit of memory maps" unless map_limit&.< 200_000 }

    # With a large heap there is no garbage collection, and fibers that have ended keep their stacks.
    %w[Fiber.schedule YieldingFiber.schedule Heddle.spin].each do |start|
      it "lets #{start} start more fibers, one after the other, than there are memory maps for", timeout: 60 do
        count = (map_limit / maps_per_fiber) + 1000
        names = %w[HEAP_INIT_SLOTS HEAP_0_INIT_SLOTS HEAP_1_INIT_SLOTS HEAP_2_INIT_SLOTS]
        env = names.to_h { |name| ["RUBY_GC_#{name}", "2000000"] }
        %w[MALLOC_LIMIT MALLOC_LIMIT_MAX OLDMALLOC_LIMIT].each { |name| env["RUBY_GC_#{name}"] = "2000000000" }
        output, errors, = run_ruby(<<~RUBY, env:, timeout: 50)
          require "heddle"
          begun = 0
          Heddle.run do
            #{count}.times { #{start} { begun += 1 } }
            sleep(0) until begun == #{count}
          end
          p begun
        RUBY
        expect([output, errors]).to eq ["#{count}\n", ""]
      end
    end

    it "raises FiberError only where a fiber is awaited that can't begin" do
      output, errors, = run_ruby(<<~RUBY)
        require "heddle"
        executable = File.open("/proc/self/exe")
        Heddle.run do
          gate = Queue.new
          waiting = Array.new(10) { Heddle.spin(background: true) { gate.pop } }
          sleep(0)
          left = #{map_limit} - File.foreach("/proc/self/maps").count
          maps = Array.new(left - 200) { IO::Buffer.map(executable, 4096, 0, IO::Buffer::READONLY) }
          too_many = Array.new(300) { Heddle.spin(background: true) { gate.pop } }
          begin
            Heddle.await_all(*too_many)
          rescue FiberError => e
            puts e.message
          end
          maps.each(&:free)
          gate.close
          p Heddle.await_all(*waiting).tally, *Heddle.await_all(Heddle.spin { :begun })
        end
      RUBY
      expect([output, errors]).to match [/\Acan't .*\n\{nil ?=> ?10\}\n:begun\n\z/, ""]
    end
  end

  it "sets and cancels 100,000 timers" do
    popped = Heddle.run do
      queue = Queue.new
      consumer = Queue.new
      Fiber.schedule { consumer.push(Array.new(100_000) { queue.pop(timeout: 60) }.sum) }
      100_000.times do |number|
        queue.push(number)
        sleep(0) if (number % 100).zero?
      end
      consumer.pop
    end
    expect(popped).to eq (0...100_000).sum
  end

  it "wakes more fibers that wait for one descriptor than a ring has entries" do
    all = in_child do
      woken = 0
      IO.pipe do |reader, writer|
        Heddle.run do
          more_than_a_ring.times { Fiber.schedule { woken += 1 if reader.wait_readable } }
          sleep(a_moment)
          writer.write("x")
        end
      end
      woken
    end
    expect(all).to eq more_than_a_ring
  end

  it "accepts more operations at once than a ring has entries" do
    counts = in_child do
      results = Hash.new(0)
      IO.pipe do |reader, writer|
        Heddle.run do
          gate = Queue.new
          more_than_a_ring.times do
            Fiber.schedule { results[:timed_out] += 1 unless reader.wait_readable(0.05) }
            Fiber.schedule { results[:slept] += 1 if sleep(0.05) } # at least
            Fiber.schedule { results[:popped] += 1 unless gate.pop }
          end
          gate.close
          writer.flush
        end
      end
      results
    end
    expect(counts).to eq(timed_out: more_than_a_ring, slept: more_than_a_ring, popped: more_than_a_ring)
  end

  it "cancels more waits than a ring has entries" do
    counts = in_child do
      results = Hash.new(0)
      begun = Queue.new
      # It stays open until the waits have been cancelled.
      reader, writer = IO.pipe
      # On a busy machine the usual 5 seconds may be over when the last of them runs its ensure clause.
      thread = scheduled_thread(grace: 60) do
        more_than_a_ring.times do
          Fiber.schedule do
            results[:begun] += 1
            reader.wait_readable
            results[:readable] += 1
          rescue Exception => e # rubocop:disable Lint/RescueException -- whatever ends it
            results[e.class.name] += 1
            raise
          ensure
            results[:ended] += 1
          end
        end
        begun << true
      end
      begun.pop
      until_asleep(thread)
      thread.kill.join
      writer.close
      results
    end
    expect(counts).to eq(:begun => more_than_a_ring, "Heddle::Stop" => more_than_a_ring, :ended => more_than_a_ring)
  end

  describe "with a full file table" do
    # Runs the block with only `spare` descriptors left.
    def with_few_descriptors(spare)
      highest = Dir.children("/proc/self/fd").map(&:to_i).max
      Process.setrlimit(:NOFILE, highest + 1 + spare, Process.getrlimit(:NOFILE).last)
      fill_file_table
      @fillers.pop(spare).each(&:close)
      yield
    end

    # When no descriptor is left, Ruby collects garbage and tries again. So all descriptors that are opened here are
    # kept.
    def fill_file_table
      @fillers = []
      loop { @fillers << File.open(File::NULL) }
    rescue Errno::EMFILE
      nil
    end

    before { skip "needs /proc" unless File.directory?("/proc/self/fd") }

    it "raises Errno::EMFILE in the fiber that opens, and lets the other fibers continue" do
      result = in_child do
        Heddle.run do
          reader, writer = IO.pipe
          with_few_descriptors(0) do
            read = Queue.new
            Fiber.schedule { read.push(reader.readpartial(5)) }
            begin
              IO.pipe
            rescue Errno::EMFILE => e
              error = e.class
            end
            sleep(a_moment)
            writer.write("works")
            [error, read.pop]
          end
        end
      end
      expect(result).to eq [Errno::EMFILE, "works"]
    end

    it "raises Errno::EMFILE in the fiber that accepts, which can accept when there is room again" do
      result = in_child do
        Heddle.run do
          server = TCPServer.new("127.0.0.1", 0)
          room = Socket.new(:UNIX, :STREAM)
          with_few_descriptors(1) do
            client = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
            begin
              server.accept
            rescue Errno::EMFILE => e
              error = e.class
            end
            room.close
            server.accept.write("hello")
            [error, client.readpartial(5)]
          end
        end
      end
      expect(result).to eq [Errno::EMFILE, "hello"]
    end

    it "lets fibers wait for a process" do
      status = in_child do
        Heddle.run do
          pid = spawn("sleep", "0.01")
          with_few_descriptors(0) { Process.wait2(pid).last.success? }
        end
      end
      expect(status).to be true
    end

    it "lets fibers sleep and wait for threads" do
      result = in_child do
        Heddle.run { with_few_descriptors(0) { Thread.new { sleep(a_moment) && :joined }.value } }
      end
      expect(result).to eq :joined
    end

    it "raises an error that names the cause from Heddle::Scheduler.new" do
      message = in_child do
        with_few_descriptors(0) do
          Fiber.set_scheduler(Heddle::Scheduler.new)
          "no error"
        rescue StandardError => e
          e.message
        end
      end
      expect(message).to match(/too many open files/i)
    end

    it "lets a scheduler be created later" do
      slept = in_child do
        with_few_descriptors(0) do
          begin
            Heddle.run { :made_with_nothing }
          rescue StandardError
            nil
          end
          Process.setrlimit(:NOFILE, Process.getrlimit(:NOFILE).last)
          Heddle.run { sleep(a_moment) && :slept }
        end
      end
      expect(slept).to eq :slept
    end
  end
end
