# frozen_string_literal: true

require "io/wait"
require "open3"
require "tmpdir"

RSpec.describe "Child processes" do
  let(:directory) { Dir.mktmpdir("heddle") }
  let(:fifo) { File.join(directory, "fifo").tap { |path| File.mkfifo(path) } }

  after { FileUtils.remove_entry(directory) }

  # Yields a Proc that lets a process end which reads one line from the FIFO. Only another fiber, which runs while the
  # first one waits for the process, can call it.
  def gate
    File.open(fifo, File::RDWR) { |io| yield -> { io.syswrite("go\n") } }
  end

  it "are waited for, and return their status" do
    status = Heddle.run { Process.wait2(Process.spawn("exit 7")).last.exitstatus }

    expect(status).to eq(7)
  end

  it "set $? when they are waited for" do
    status = Heddle.run do
      Process.wait(Process.spawn("exit 3"))
      Process.last_status.exitstatus
    end

    expect(status).to eq(3)
  end

  it "set $? to the status that this fiber has waited for, while other fibers wait, too" do
    statuses = []
    Heddle.run do
      10.times do |i|
        Fiber.schedule do
          system("exit #{i}")
          statuses << [i, Process.last_status.exitstatus]
        end
      end
    end

    expect(statuses).to match_array(Array.new(10) { |i| [i, i] })
  end

  it "return the signal that ended them" do
    signal = Heddle.run do
      pid = Process.spawn("sleep 60")
      Fiber.schedule { Process.kill(:TERM, pid) }
      Process.wait2(pid).last.termsig
    end

    expect(signal).to eq(Signal.list["TERM"])
  end

  it "are waited for while other fibers run" do
    status = nil
    gate do |open|
      Heddle.run do
        Fiber.schedule { status = Process.wait2(Process.spawn("head -n 1", in: fifo, out: File::NULL)).last }
        open.call
      end
    end

    expect(status).to be_success
  end

  it "are run by system while other fibers run" do
    result = nil
    gate do |open|
      Heddle.run do
        Fiber.schedule { result = system("head", "-n", "1", fifo, out: File::NULL) }
        open.call
      end
    end

    expect(result).to be(true)
  end

  it "are run by backticks while other fibers run" do
    result = nil
    gate do |open|
      Heddle.run do
        Fiber.schedule { result = `head -n 1 #{fifo}` }
        open.call
      end
    end

    expect(result).to eq("go\n")
  end

  it "make system return false or nil, as without a scheduler" do
    expect(Heddle.run { [system("exit 1"), system("/nowhere/heddle")] }).to eq([false, nil])
  end

  it "make system raise with exception: true" do
    expect { Heddle.run { system("exit 2", exception: true) } }.to raise_error(RuntimeError, /exit 2/)
  end

  it "that don't exist make backticks raise" do
    expect { Heddle.run { `/nowhere/heddle` } }.to raise_error(Errno::ENOENT)
  end

  it "return more to backticks than a pipe holds" do
    size = Heddle.run { `head -c 1000000 /dev/zero`.bytesize }

    expect(size).to eq(1_000_000)
  end

  it "exchange data through IO.popen" do
    text = Heddle.run do
      IO.popen("cat", "r+") do |io|
        io.puts("through cat")
        io.close_write
        io.read
      end
    end

    expect([text, Process.last_status.success?]).to eq(["through cat\n", true])
  end

  it "receive and return through IO.popen more than its pipes hold" do
    size = Heddle.run do
      IO.popen("cat", "r+") do |io|
        Fiber.schedule do
          io.write("x" * 500_000)
          io.close_write
        end
        io.read.bytesize
      end
    end

    expect(size).to eq(500_000)
  end

  it "are waited for when the IO of IO.popen is closed" do
    status = Heddle.run do
      IO.popen("read line; exit 4", "w").close
      Process.last_status.exitstatus
    end

    expect(status).to eq(4)
  end

  it "are run by Open3.capture3" do
    output, errors, status = Heddle.run { Open3.capture3("cat; echo err >&2; exit 5", stdin_data: "x" * 200_000) }

    expect([output.bytesize, errors, status.exitstatus]).to eq([200_000, "err\n", 5])
  end

  it "are connected by Open3.pipeline_r" do
    text = Heddle.run { Open3.pipeline_r("echo weft", "tr a-z A-Z") { |output, _threads| output.read } }

    expect(text).to eq("WEFT\n")
  end

  it "run concurrently" do
    statuses = []
    gates = Array.new(20) { IO.pipe }
    Heddle.run do
      gates.each_with_index do |(reader, _), i|
        Fiber.schedule { statuses << Process.wait2(Process.spawn("read line; exit #{i}", in: reader)).last.exitstatus }
      end
      # The processes end in another order than they were started in.
      gates.reverse_each { |_, writer| writer.puts }
    end
    gates.flatten.each(&:close)

    expect(statuses.sort).to eq((0...20).to_a)
  end

  it "that have ended already are waited for" do
    status = Heddle.run do
      reader, writer = IO.pipe
      pid = Process.spawn("exit 6", out: writer)
      writer.close
      # The pipe ends when the process ends.
      reader.read
      reader.close
      Process.wait2(pid).last.exitstatus
    end

    expect(status).to eq(6)
  end

  it "aren't waited for with WNOHANG" do
    gate do |open|
      found = Heddle.run do
        pid = Process.spawn("head -n 1", in: fifo, out: File::NULL)
        early = Process.wait(pid, Process::WNOHANG)
        open.call
        [early, Process.wait(pid) == pid]
      end

      expect(found).to eq([nil, true])
    end
  end

  it "are reported as stopped with WUNTRACED" do
    seen = Heddle.run do
      pid = Process.spawn("kill -STOP $$; exit 8")
      stopped = Process.wait2(pid, Process::WUNTRACED).last.stopped?
      Process.kill(:CONT, pid)
      [stopped, Process.wait2(pid).last.exitstatus]
    end

    expect(seen).to eq([true, 8])
  end

  it "of another process raise ECHILD" do
    expect { Heddle.run { Process.wait(Process.pid) } }.to raise_error(Errno::ECHILD)
  end

  it "are waited for by Process::Status.wait" do
    status = Heddle.run { Process::Status.wait(Process.spawn("exit 9")) }

    expect(status.exitstatus).to eq(9)
  end

  it "are watched by Process.detach" do
    status = Heddle.run { Process.detach(Process.spawn("exit 2")).value.exitstatus }

    expect(status).to eq(2)
  end

  it "are forked with a block, and waited for" do
    status = Heddle.run { Process.wait2(Process.fork { exit!(11) }).last.exitstatus }

    expect(status).to eq(11)
  end

  # Each program has a process of its own, in which there is no other child that could be waited for by chance.
  describe "of any kind" do
    it "are waited for with -1 in the order in which they end" do
      statuses = in_child do
        Heddle.run do
          reader, writer = IO.pipe
          Process.spawn("read line; exit 1", in: reader)
          Process.spawn("exit 2")
          first = Process.wait2(-1).last.exitstatus
          writer.puts
          [first, Process.wait2(-1).last.exitstatus]
        end
      end

      expect(statuses).to eq([2, 1])
    end

    it "are waited for with -1 while other fibers run" do
      status = in_child do
        Heddle.run do
          reader, writer = IO.pipe
          Process.spawn("read line; exit 3", in: reader)
          Fiber.schedule { writer.puts }
          Process.wait2.last.exitstatus
        end
      end

      expect(status).to eq(3)
    end

    it "are all waited for by Process.waitall" do
      statuses = in_child do
        Heddle.run do
          5.times { |i| Process.spawn("exit #{i}") }
          Process.waitall.map { |_, status| status.exitstatus }
        end
      end

      expect(statuses.sort).to eq([0, 1, 2, 3, 4])
    end

    it "raise ECHILD when there is no child" do
      expect { in_child { Heddle.run { Process.wait(-1) } } }.to raise_error(Errno::ECHILD)
    end

    it "are waited for by their process group" do
      statuses = in_child do
        Heddle.run do
          other = Process.spawn("exit 1")
          leader = Process.spawn("exit 2", pgroup: true)
          found = Process.wait2(-leader).last.exitstatus
          [found, Process.wait2(other).last.exitstatus]
        end
      end

      expect(statuses).to eq([2, 1])
    end

    it "are waited for by the own process group with 0" do
      statuses = in_child do
        Heddle.run do
          stranger = Process.spawn("exit 1", pgroup: true)
          Process.spawn("exit 2")
          [Process.wait2(0).last.exitstatus, Process.wait2(stranger).last.exitstatus]
        end
      end

      expect(statuses).to eq([2, 1])
    end

    it "are waited for by two fibers, each of which gets one process" do
      statuses = in_child do
        found = []
        Heddle.run do
          2.times { |i| Process.spawn("exit #{i}") }
          2.times { Fiber.schedule { found << Process.wait2(-1).last.exitstatus } }
        end
        found
      end

      expect(statuses.sort).to eq([0, 1])
    end
  end

  it "are waited for in a thread of its own with a scheduler" do
    status = Thread.new { Heddle.run { Process.wait2(Process.spawn("exit 7")).last.exitstatus } }.value

    expect(status).to eq(7)
  end
end

RSpec.describe "A fiber that waits for a child process", :regression do
  before { skip "there are no descriptors of processes here" unless File.directory?("/proc/self/fd") }

  preamble = <<~RUBY
    require "heddle"
    def process_descriptors
      Dir.children("/proc/self/fd").count do |number|
        File.readlink("/proc/self/fd/\#{number}").include?("pidfd")
      rescue SystemCallError
        false
      end
    end
    child = spawn("sleep 60")
    at_exit { Process.kill(:KILL, child) rescue nil }
  RUBY

  # The fiber is terminated twice and waits again in its `ensure`, so it is abandoned without being unwound.
  it "leaves no descriptor behind when it is abandoned" do
    output, errors, = run_ruby(<<~RUBY)
      #{preamble}
      counted = Queue.new
      thread = Thread.new do
        Thread.current.report_on_exception = false
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { begin Process.wait(child); ensure Process.wait(child); end }
        puts process_descriptors
        counted << true
        raise Interrupt
      end
      counted.pop
      begin
        thread.raise(Interrupt) until thread.join(0.05)
      rescue Interrupt
        puts process_descriptors
      end
    RUBY

    expect([output, errors]).to eq ["1\n0\n", ""]
  end

  it "leaves its descriptor to the parent when another fiber forks" do
    skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"

    output, errors, = run_ruby(<<~RUBY)
      #{preamble}
      Heddle.run do
        Fiber.schedule { Process.wait(child) }
        forked = fork do
          sleep(0)
          $stdout.syswrite(process_descriptors)
          exit!
        end
        Process.wait(forked)
        Process.kill(:KILL, child)
      end
    RUBY

    expect([output, errors]).to eq ["0", ""]
  end
end
