# frozen_string_literal: true

# Known traps of the hook interface. The tag `trap:` is the number of the trap.
RSpec.describe "A scheduler across fork" do
  it "uses no ring and no epoll instance of the parent in the child", trap: 46 do
    in_the_child, in_the_parent = IO.pipe do |reader, writer|
      Heddle.run do
        read = Queue.new
        Fiber.schedule { read.push(reader.readpartial(20)) }
        slept = in_child { Array.new(20) { sleep(0.0001) }.size }
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
          Thread.new { writer.write("bytes") }
          reader.readpartial(10)
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
            sleep(0.005)
            writer.syswrite("#{Process.pid}\n")
          end
        end
        in_child { sleep(0.02) }
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
          Thread.new { Heddle.run { sleep(0.001) } }.join
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
      sleep(0.001)
      IO.popen([RbConfig.ruby, "-e", 'print Dir.children("/proc/self/fd").size'], &:read)
    end
    expect(open_in_child).to eq(IO.popen([RbConfig.ruby, "-e", 'print Dir.children("/proc/self/fd").size'], &:read))
  end
end
