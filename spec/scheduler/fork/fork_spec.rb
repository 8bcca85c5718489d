# frozen_string_literal: true

require "socket"

RSpec.describe "fork" do
  # What a child must be able to do. in_child raises in the parent what goes wrong in the child.
  doings = {
    "sleep" => -> { sleep(a_moment) && :slept },
    "read from a pipe" => lambda {
      IO.pipe do |reader, writer|
        feeder = Thread.new { writer.write("piped") }
        reader.readpartial(10).tap { feeder.join }
      end
    },
    "talk over TCP" => lambda {
      TCPServer.open("127.0.0.1", 0) do |server|
        port = server.local_address.ip_port
        client = Thread.new { TCPSocket.open("127.0.0.1", port) { |socket| socket.write("tcp") } }
        server.accept.read.tap { client.join }
      end
    },
    "pop from a queue" => lambda {
      queue = Queue.new
      Thread.new { queue.push(:popped) }
      queue.pop
    },
    "resolve a name" => -> { Addrinfo.getaddrinfo("localhost", 1, nil, :STREAM).map(&:ip_port).uniq },
    "wait for a process" => -> { `echo waited` },
    "give a time limit" => lambda {
      begin
        Timeout.timeout(0.005) { sleep }
      rescue Timeout::Error
        :over
      end
    }
  }
  results = {
    "sleep" => :slept, "read from a pipe" => "piped", "talk over TCP" => "tcp", "pop from a queue" => :popped,
    "resolve a name" => [1], "wait for a process" => "waited\n", "give a time limit" => :over
  }

  doings.each do |name, doing|
    it "in a fiber makes a child whose fiber can #{name}" do
      expect(Heddle.run { in_child(&doing) }).to match results.fetch(name)
    end

    it "in a fiber makes a child that can start a scheduler in a thread and #{name}" do
      result = Heddle.run { in_child { Thread.new { Heddle.run(&doing) }.value } }
      expect(result).to match results.fetch(name)
    end

    it "in the root fiber makes a child that can start a scheduler and #{name}" do
      expect(with_scheduler { in_child { Thread.new { Heddle.run(&doing) }.value } }).to match results.fetch(name)
    end
  end

  it "in the root fiber leaves the scheduler usable in the child" do
    if RUBY_VERSION >= "4.0"
      expect(with_scheduler { in_child { Fiber.scheduler } }).to be_nil
    else
      result = with_scheduler do
        in_child do
          results = Queue.new
          Fiber.schedule { results.push(sleep(a_moment) && :slept) }
          Fiber.set_scheduler(nil)
          results.pop
        end
      end
      expect(result).to eq :slept
    end
  end

  it "in a fiber leaves Fiber.schedule usable in the child" do
    skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
    result = Heddle.run do
      in_child do
        results = Queue.new
        Fiber.schedule { results.push(sleep(a_moment) && :slept) }
        results.pop
      end
    end
    expect(result).to eq :slept
  end

  it "leaves the parent's fibers in the parent" do
    reader, writer = IO.pipe
    Heddle.run do
      3.times do
        Fiber.schedule do
          sleep(a_moment)
          writer.syswrite("#{Process.pid}\n")
        end
      end
      in_child { sleep(0.05) } # at least
    end
    writer.close
    expect(reader.read.lines(chomp: true).map(&:to_i)).to eq [Process.pid] * 3
  ensure
    reader.close
  end

  it "doesn't take events that the parent's fibers wait for" do
    read = IO.pipe do |reader, writer|
      Heddle.run do
        bytes = Queue.new
        Fiber.schedule { bytes.push(reader.readpartial(20)) }
        in_child { sleep(a_moment) }
        writer.write("for the parent")
        bytes.pop
      end
    end
    expect(read).to eq "for the parent"
  end

  it "leaves the parent's timers running" do
    took = seconds do
      Heddle.run do
        Fiber.schedule { sleep(0.05) } # at least
        in_child { :at_once }
      end
    end
    expect(took).to be >= 0.05
  end

  it "doesn't end the parent's waits when the child closes the same IO" do
    read = IO.pipe do |reader, writer|
      Heddle.run do
        bytes = Queue.new
        Fiber.schedule { bytes.push(reader.readpartial(20)) }
        in_child do
          reader.close
          sleep(a_moment)
        end
        writer.write("still here")
        bytes.pop
      end
    end
    expect(read).to eq "still here"
  end

  it "makes a working grandchild from a child" do
    expect(Heddle.run { in_child { in_child { sleep(a_moment) && :grandchild } } }).to eq :grandchild
  end

  it "may happen in many fibers at once" do
    values = []
    Heddle.run do
      5.times do |number|
        Fiber.schedule { values << in_child { number.tap { sleep(a_moment) } } }
      end
    end
    expect(values).to contain_exactly(0, 1, 2, 3, 4)
  end

  it "with a block runs the block in the fiber, and the child ends after it" do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      $stdout.sync = true
      parent = Process.pid
      waited = false
      Heddle.run do
        # In the parent the line comes last, however long the child takes. In the child it would come at once.
        Fiber.schedule { sleep(0.0005) until waited || Process.pid != parent; puts "sibling" }
        pid = fork { sleep(a_moment); puts "child" }
        Process.wait(pid)
        puts "parent \#{$?.success?}"
        waited = true
      end
    RUBY
    expect([output, errors, status.success?]).to eq ["child\nparent true\nsibling\n", "", true]
  end

  # The child has this fiber only, and ends with it. Ruby without a scheduler behaves the same.
  it "without a block continues the fiber in both processes, and the child ends with it" do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      $stdout.sync = true
      Heddle.run do
        if (pid = fork)
          Process.wait(pid)
          sleep(a_moment)
          puts "parent"
        else
          sleep(a_moment)
          puts "child"
        end
      end
      puts "after"
    RUBY
    expect([output.lines(chomp: true).tally, errors, status.success?])
      .to eq [{ "child" => 1, "parent" => 1, "after" => 1 }, "", true]
  end

  # On Ruby 4.0 the child has no scheduler.
  describe "without a block, in whose child the fiber starts another one, and ends,", if: RUBY_VERSION < "4.0" do
    # What the child prints, what it reports, and its status.
    def child_that_ends_by(last_step)
      output, errors, = run_ruby(<<~RUBY)
        require "heddle"
        $stdout.sync = true
        Heddle.run do
          Fiber.schedule do
            if (pid = fork)
              Process.wait(pid)
              puts $?.exitstatus
            else
              Fiber.schedule { begin; sleep(a_moment); puts "finished"; ensure; puts "ensure"; end }
              #{last_step}
            end
          end
        end
      RUBY
      [output.lines(chomp: true), errors]
    end

    it "waits for the other fiber", :regression do
      expect(child_that_ends_by("nil")).to eq [%w[finished ensure 0], ""]
    end

    it "stops the other fiber where the fiber ends by exit", :regression do
      expect(child_that_ends_by("exit(4)")).to eq [%w[ensure 4], ""]
    end

    it "keeps its status where it is a plain Fiber, with whose end the other fiber is lost", :regression do
      output, errors, = run_ruby(<<~RUBY)
        require "heddle"
        Heddle.run do
          Fiber.new { Process.wait(fork || (Fiber.schedule { sleep(a_moment) } && exit(4))) }.resume
          puts $?.exitstatus
        end
      RUBY
      expect([output, errors]).to eq ["4\n", ""]
    end

    it "stops the other fiber where the fiber ends by an error, as threads are that run at the process's end" do
      expect(child_that_ends_by('raise KeyError, "lost"')).to match [%w[ensure 1], /lost \(KeyError\)\n/]
    end
  end

  it "leaves the root fiber in the parent, although the child's fiber waits" do
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      $stdout.sync = true
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule { Process.wait(fork { sleep(a_moment) && puts("child") }) }
      puts "root"
    RUBY
    expect([output.lines(chomp: true).tally, errors]).to eq [{ "root" => 1, "child" => 1 }, ""]
  end

  it "keeps the exit status of the child" do
    status = Heddle.run do
      pid = fork { exit!(7) }
      Process.wait2(pid).last.exitstatus
    end
    expect(status).to eq 7
  end

  it "in another thread makes a child without this thread's fibers" do
    threads = Heddle.run do
      Fiber.schedule { sleep(a_moment) }
      Thread.new { in_child { Thread.list.size } }.value
    end
    expect(threads).to eq 1
  end

  # Forks in a fiber, sends the child SIGTERM when it writes to the pipe, and returns how the child ended.
  def ended_by_term
    Heddle.run(grace: 0.05) do
      reader, writer = IO.pipe
      pid = fork do
        # It reports the fiber that does not end.
        $stderr.reopen(File::NULL)
        yield writer
      end
      reader.read(1)
      Process.kill(:TERM, pid)
      Process.wait2(pid).last.termsig
    ensure
      [reader, writer].each(&:close)
    end
  end

  it "in another thread makes a child that ends without an error while this thread waits" do
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      thread = Thread.new { Heddle.run { sleep } }
      Thread.pass until thread.status == "sleep"
      10.times { Process.wait(fork {}) && puts($?.success?) }
    RUBY

    expect([output, errors]).to eq ["true\n" * 10, ""]
  end

  it "lets an untrapped signal end the child while its fiber waits" do
    signal = ended_by_term do |writer|
      writer.write("x")
      sleep
    end
    expect(signal).to eq Signal.list["TERM"]
  end

  it "lets an untrapped signal end the child while another of its fibers computes" do
    signal = ended_by_term do |writer|
      Fiber.set_scheduler(Heddle::Scheduler.new(grace: 0.05)) unless Fiber.scheduler
      Fiber.schedule do
        writer.write("x")
        loop { nil }
      rescue Exception # rubocop:disable Lint/RescueException -- as an application does
        retry
      end
      sleep
    end
    expect(signal).to eq Signal.list["TERM"]
  end
end
