# frozen_string_literal: true

require "fcntl"
require "socket"
require "timeout"
require "zlib"

RSpec.describe Heddle::Scheduler do
  hooks = %i[
    address_resolve block blocking_operation_wait close fiber fiber_interrupt io_close io_pread io_pwrite io_read
    io_select io_wait io_write kernel_sleep process_wait run scheduler_close timeout_after unblock yield
  ]

  def scheduler
    Fiber.scheduler
  end

  # Ruby 3.4 passes blocking_operation_wait a Proc, which in a fiber calls the hook again. Each `stat` would be slower.
  left_out = RUBY_VERSION.start_with?("3.4") ? [:blocking_operation_wait] : []

  hooks.each do |hook|
    it "#{left_out.include?(hook) ? "leaves out" : "has"} the hook #{hook}" do
      expect(Heddle::Scheduler.method_defined?(hook)).to be !left_out.include?(hook)
    end
  end

  it "is accepted by Fiber.set_scheduler without a warning" do
    expect { with_scheduler { nil } }.not_to output.to_stderr
  end

  describe "#block and #unblock" do
    it "wait until the fiber is unblocked" do
      order = []
      Heddle.run do
        fiber = Fiber.schedule do
          scheduler.block(:blocker, nil)
          order << :unblocked
        end
        sleep(0)
        order << :before
        scheduler.unblock(:blocker, fiber)
      end
      expect(order).to eq %i[before unblocked]
    end

    it "wait for the timeout, and not less" do
      expect(seconds { Heddle.run { scheduler.block(:blocker, 0.02) } }).to be >= 0.02
    end
  end

  describe "#kernel_sleep" do
    it "accepts no argument, nil, or a time" do
      ended = []
      Heddle.run do
        fibers = [[], [nil], [60]].map do |arguments|
          Fiber.schedule do
            scheduler.kernel_sleep(*arguments)
            ended << arguments
          end
        end
        fibers.each { |fiber| scheduler.unblock(:blocker, fiber) }
      end
      expect(ended).to eq [[], [nil], [60]]
    end
  end

  describe "#fiber" do
    it "starts the block, and returns its fiber" do
      started = false
      answer = Heddle.run do
        scheduler.fiber { started = true }
      end
      expect([answer, started]).to match [be_an_instance_of(Fiber), true]
    end
  end

  describe "#io_select" do
    it "accepts one to four arguments" do
      answers = IO.pipe do |reader, writer|
        writer.write("x")
        Heddle.run do
          [[[reader]], [[reader], nil], [[reader], [], nil], [[reader], nil, nil, 60]].map do |arguments|
            scheduler.io_select(*arguments)
          end
        end.map { |readable, writable, excepted| [readable == [reader], writable, excepted] }
      end
      expect(answers).to eq [[true, [], []]] * 4
    end

    it "returns nil when the timeout expires" do
      answer = IO.pipe { |reader, _writer| Heddle.run { scheduler.io_select([reader], nil, nil, 0.005) } }
      expect(answer).to be_nil
    end
  end

  describe "#process_wait" do
    it "returns a Process::Status" do
      status = Heddle.run { scheduler.process_wait(spawn("exit 3"), 0) }
      expect(status).to be_a(Process::Status).and have_attributes(exitstatus: 3)
    end

    it "sets $? for the fiber that waits" do
      status = Heddle.run do
        Process.wait(spawn("exit 4"))
        $?.exitstatus # rubocop:disable Style/SpecialGlobalVars -- this is what it is about
      end
      expect(status).to eq 4
    end

    it "waits for any child with -1, and lets other fibers run meanwhile" do
      # In a process of its own, without other children.
      statuses, runs = in_child do
        runs = 0
        waited = Heddle.run do
          2.times { |number| spawn("sleep #{a_moment}; exit #{number + 1}") }
          Fiber.schedule do
            3.times do
              runs += 1
              sleep(0)
            end
          end
          Process.waitall.map { |_, status| status.exitstatus }
        end
        [waited, runs]
      end
      expect([statuses.sort, runs]).to eq [[1, 2], 3]
    end

    it "waits for a process group" do
      status = Heddle.run do
        pid = spawn("sleep #{a_moment}; exit 5", pgroup: true)
        Process.wait2(-pid).last.exitstatus
      end
      expect(status).to eq 5
    end

    it "makes Process.wait raise Errno::ECHILD when there is no such child" do
      expect { Heddle.run { Process.wait(Process.pid) } }.to raise_error(Errno::ECHILD)
    end
  end

  describe "#address_resolve" do
    it "returns an Array of addresses" do
      expect(Heddle.run { scheduler.address_resolve("localhost") }).to include("127.0.0.1").or include("::1")
    end

    it "returns a numeric address unchanged" do
      expect(Heddle.run { scheduler.address_resolve("127.0.0.1") }).to eq ["127.0.0.1"]
    end

    it "makes the resolution of a name that doesn't exist raise SocketError" do
      expect { Heddle.run { Addrinfo.getaddrinfo("no-such-host.invalid", nil) } }.to raise_error(SocketError)
    end

    it "returns an address with a scope" do
      expect(Heddle.run { scheduler.address_resolve("fe80::1%lo") }).to match [/\Afe80::1(%|\z)/]
    end

    it "raises for a name with a null byte, or doesn't resolve it" do
      answer = Heddle.run do
        scheduler.address_resolve("local\0host")
      rescue ArgumentError, SocketError
        nil
      end
      expect(Array(answer)).to be_empty
    end
  end

  describe "#timeout_after" do
    it "returns the block's value" do
      expect(Heddle.run { scheduler.timeout_after(60, RuntimeError, "late") { :given } }).to eq :given
    end

    it "raises the given class with the given message" do
      error = Class.new(StandardError)
      expect { Heddle.run { scheduler.timeout_after(0.005, error, "late") { sleep } } }.to raise_error(error, "late")
    end

    it "raises the given class with its own message without one" do
      error = Class.new(StandardError) { def message = "its own" }
      expect { Heddle.run { scheduler.timeout_after(0.005, error) { sleep } } }.to raise_error(error, "its own")
    end

    it "makes the exception with all given arguments" do
      error = Class.new(StandardError) { def initialize(what, why) = super("#{what}, #{why}") }
      expect { Heddle.run { scheduler.timeout_after(0.005, error, "late", "slow") { sleep } } }
        .to raise_error(error, "late, slow")
    end

    it "raises the given instance itself" do
      error = Class.new(Exception).new("its own") # rubocop:disable Lint/InheritException -- as Ruby 4.1 does
      raised = Heddle.run do
        scheduler.timeout_after(0.005, error, nil) { sleep }
      rescue Exception => e # rubocop:disable Lint/RescueException
        e
      end
      expect(raised).to be_an_instance_of(error.class)
    end

    it "raises in the calling fiber, and in no other" do
      interrupted = []
      virtually do
        3.times do |number|
          Fiber.schedule do
            if number == 1
              Timeout.timeout(5) { sleep }
            else
              sleep(20)
            end
          rescue Timeout::Error
            interrupted << number
          end
        end
      end
      expect(interrupted).to eq [1]
    end

    it "doesn't raise after the block has ended" do
      slept = virtually do
        Timeout.timeout(5) { :in_time }
        sleep(20)
        :not_interrupted
      end
      expect(slept).to eq :not_interrupted
    end

    it "lets the outer time limit expire when the inner one is longer" do
      outcome = virtually do
        outer = Class.new(StandardError)
        Timeout.timeout(5, outer) { Timeout.timeout(60) { sleep } }
      rescue outer
        :outer
      end
      expect(outcome).to eq :outer
    end
  end

  describe "#io_close" do
    it "closes the descriptor when it returns true, and leaves it open otherwise" do
      answer, open = IO.pipe do |reader, writer|
        Heddle.run do
          descriptor = IO.for_fd(writer.fcntl(Fcntl::F_DUPFD, 0), autoclose: false).fileno
          writer.close
          answer = scheduler.io_close(descriptor)
          open = reader.read_nonblock(1, exception: false) == :wait_readable
          IO.for_fd(descriptor).close if open
          [answer ? true : false, open]
        end
      end
      expect(answer).to be !open
    end

    it "leaves a number that another thread's scheduler uses to that thread, while it waits in the kernel" do
      one, other = UNIXSocket.pair
      outcome = Queue.new
      reading = Thread.new do
        Heddle.run do
          one.read
        rescue IOError => e
          outcome.push(e.class)
        end
      end
      until_asleep(reading)
      one.autoclose = false
      answer = Heddle.run { scheduler.io_close(one.fileno) }
      expect([answer, outcome.pop, other.read]).to eq [true, IOError, ""]
    ensure
      reading.join
      other.close
    end

    # Without garbage collection, which could close IOs of other examples and free a lower number.
    it "releases a descriptor's number before IO#close returns", gc: :plain do
      GC.start
      GC.disable
      numbers = Heddle.run do
        Array.new(10) { File.open(File::NULL, &:fileno) }
      end
      expect(numbers.uniq.size).to eq 1
    ensure
      GC.enable
    end
  end

  describe "#yield" do
    it "lets the other fibers run, and returns" do
      order = []
      Heddle.run do
        gate = Queue.new
        Fiber.schedule { order << gate.pop }
        gate.push(:other)
        scheduler.yield
        order << :back
      end
      expect(order).to eq %i[other back]
    end
  end

  describe "#blocking_operation_wait" do
    it "lets other fibers run while a megabyte is compressed" do
      skip "Ruby 3.3 never asks, and on 3.4 the hook is left out" if RUBY_VERSION < "4.0"
      runs = 0
      Heddle.run do
        other = Fiber.schedule { loop { sleep(a_moment) && runs += 1 } }
        data = Random.new(1).bytes(1_000_000)
        Zlib::Deflate.deflate(data) until runs.positive?
        other.kill
      end
      expect(runs).to be_positive
    end

    it "does no harm to compression in many fibers" do
      sizes = []
      text = "heddle and warp " * 50_000
      Heddle.run do
        8.times { Fiber.schedule { sizes << Zlib::Inflate.inflate(Zlib::Deflate.deflate(text)).size } }
      end
      expect(sizes).to eq [text.size] * 8
    end

    it "does no harm to a require that fails" do
      expect { Heddle.run { require "heddle/no_such_file" } }.to raise_error(LoadError)
    end
  end
end
