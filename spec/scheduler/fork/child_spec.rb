# frozen_string_literal: true

require "tempfile"

RSpec.describe "A forked child", :regression do
  it "may close an IO for which a sibling of its fiber waited in IO.select" do
    closed = IO.pipe do |reader, writer|
      Heddle.run do
        Fiber.schedule { IO.select([reader]) }
        in_child { reader.close || reader.closed? }
      ensure
        writer.write("x")
      end
    end
    expect(closed).to be true
  end

  it "may close an IO for which two siblings of its fiber waited in IO.select, among other IOs" do
    closed = IO.pipe do |reader, writer|
      IO.pipe do |other, _|
        Heddle.run do
          2.times { Fiber.schedule { IO.select([other, reader], [], []) } }
          in_child { reader.close || reader.closed? }
        ensure
          writer.write("x")
        end
      end
    end
    expect(closed).to be true
  end

  # io_uring leaves files to the kernel. An operation may not even be submitted before the other fibers run.
  def skip_without_workers
    skip "this backend has no workers for files" unless Heddle.run { Fiber.scheduler.backend } == :poll
  end

  # The parent's fibers don't run between their writes and the fork, so the results haven't been received yet.
  it "doesn't hang on a worker's result that wasn't received when the process forked" do
    skip_without_workers
    result = Tempfile.create("heddle") do |file|
      Heddle.run do
        Fiber.schedule { file.syswrite("x" * 4096) }
        nil until File.size(file.path) == 4096
        in_child { sleep(a_moment) && :slept }
      end
    end
    expect(result).to eq :slept
  end

  it "doesn't hang on workers that were busy when the process forked" do
    skip_without_workers
    result = Tempfile.create("heddle") do |file|
      Heddle.run do
        20.times { Fiber.schedule { file.syswrite("x" * (1 << 20)) } }
        nil until File.size(file.path).positive?
        in_child { sleep(a_moment) && :slept }
      end
    end
    expect(result).to eq :slept
  end

  it "takes no result from the parent's fibers whose work was pending when the process forked" do
    skip_without_workers
    size = Tempfile.create("heddle") do |file|
      written = 0
      Heddle.run do
        20.times { Fiber.schedule { file.syswrite("x" * (1 << 16)).then { |bytes| written += bytes } } }
        nil until File.size(file.path).positive?
        in_child { :at_once }
      end
      written
    end
    expect(size).to eq 20 << 16
  end

  # As a daemon does, the child closes all numbers that it has inherited. The scheduler is its parent's, of a thread
  # that does not exist in the child, so it learns of the fork only with its first hook.
  it "keeps the files that it has opened under numbers of its parent's scheduler" do
    skip "there is no list of descriptors here" unless File.directory?("/proc/self/fd")
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      def name(number) = File.readlink("/proc/self/fd/\#{number}")

      def nameless_files
        Dir.children("/proc/self/fd").select { |number| name(number).start_with?("anon_inode:") rescue false }.map(&:to_i)
      end

      # Of Ruby itself.
      before = nameless_files
      scheduler = Heddle::Scheduler.new
      Thread.new do
        Fiber.set_scheduler(scheduler)
        YieldingFiber.schedule { sleep(a_moment) }
        Thread.new do
          numbers = nameless_files - before
          Process.wait(fork do
            numbers.each { |number| IO.for_fd(number).close rescue Errno::EBADF }
            files = []
            files << File.open(File::NULL) until (numbers - files.map(&:fileno)).empty?
            Fiber.set_scheduler(scheduler)
            Fiber.schedule { sleep(a_moment) }
            $stdout.syswrite(files.map { |file| name(file.fileno) rescue "closed" }.uniq.join(" "))
            exit!
          end)
        end.join
      end.join
    RUBY
    expect([output, errors]).to eq [File::NULL, ""]
  end

  # The thread that waits has borrowed the scheduler's backend, and does not exist in the child.
  describe "with a scheduler whose thread waited in the kernel when the process forked" do
    def in_child_of_waiting(scheduler, &)
      IO.pipe do |reader, writer|
        thread = Thread.new do
          Fiber.set_scheduler(scheduler)
          Fiber.schedule { reader.readpartial(1) }
        end
        until_asleep(thread)
        in_child(&)
      ensure
        writer.write("x")
        thread.join
      end
    end

    it "may use the scheduler" do
      scheduler = Heddle::Scheduler.new
      slept = in_child_of_waiting(scheduler) do
        Fiber.set_scheduler(scheduler)
        slept = nil
        Fiber.schedule { slept = sleep(a_moment) && :slept }
        Fiber.set_scheduler(nil)
        slept
      end
      expect(slept).to eq :slept
    end

    it "may close the scheduler" do
      scheduler = Heddle::Scheduler.new
      expect(in_child_of_waiting(scheduler) { scheduler.close.inspect }).to eq "nil"
    end
  end
end

# Known traps of the hook interface. The tag `trap:` is the number of the trap.
RSpec.describe "A scheduler across fork" do
  it "uses no ring and no epoll instance of the parent in the child", trap: 46 do
    in_the_child, in_the_parent = IO.pipe do |reader, writer|
      Heddle.run do
        read = Queue.new
        Fiber.schedule { read.push(reader.readpartial(20)) }
        slept = in_child { Array.new(20) { sleep(a_moment) }.size }
        writer.write("for the parent")
        [slept, read.pop]
      end
    end
    expect([in_the_child, in_the_parent]).to eq [20, "for the parent"]
  end

  it "lets a fiber wait for I/O in the child", trap: 46 do
    read = Heddle.run do
      in_child do
        IO.pipe do |reader, writer|
          feeder = Thread.new { writer.write("bytes") }
          reader.readpartial(10).tap { feeder.join }
        end
      end
    end
    expect(read).to eq "bytes"
  end

  it "runs no fibers of the parent in the child", trap: 46 do
    ended_in = IO.pipe do |reader, writer|
      Heddle.run do
        2.times do
          Fiber.schedule do
            sleep(a_moment)
            writer.syswrite("#{Process.pid}\n")
          end
        end
        in_child { sleep(a_moment) }
      end
      writer.close
      reader.read.lines.map(&:to_i)
    end
    expect(ended_in).to eq [Process.pid] * 2
  end

  it "keeps the parent's waits registered when the child ends its scheduler", trap: 47 do
    read = IO.pipe do |reader, writer|
      Heddle.run do
        bytes = Queue.new
        Fiber.schedule { bytes.push(reader.readpartial(20)) }
        in_child do
          Thread.new { Heddle.run { sleep(a_moment) } }.join
          Fiber.set_scheduler(nil)
          GC.start
        end
        writer.write("still waited for")
        bytes.pop
      end
    end
    expect(read).to eq "still waited for"
  end

  it "leaves the child with the scheduler that this version of Ruby keeps", trap: 47 do
    scheduler_class = Heddle.run { in_child { Fiber.scheduler.class.name } }
    expect(scheduler_class).to eq(RUBY_VERSION >= "4.0" ? "NilClass" : "Heddle::Scheduler")
  end

  it "passes no descriptors to a program that the child executes", trap: 47 do
    skip "needs /proc" unless File.directory?("/proc/self/fd")
    open_in_child = Heddle.run do
      sleep(a_moment)
      IO.popen([RbConfig.ruby, "-e", 'print Dir.children("/proc/self/fd").size'], &:read)
    end
    expect(open_in_child).to eq(IO.popen([RbConfig.ruby, "-e", 'print Dir.children("/proc/self/fd").size'], &:read))
  end
end
