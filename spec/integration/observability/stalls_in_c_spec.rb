# frozen_string_literal: true

require "open3"
require "timeout"

# C code that keeps the GVL: no Ruby code of the process can run. The example's process sees the report and ends the C
# code, so each report that is seen was made while the stall lasted.
RSpec.describe "A stall in C code that keeps the GVL" do
  # `read_byte` waits until the example's process writes. `Kernel#syscall` keeps the GVL meanwhile.
  program = <<~RUBY
    require "heddle"
    READ, PPOLL = RUBY_PLATFORM.start_with?("aarch64") ? [63, 73] : [0, 271]
    def read_byte = syscall(READ, 0, " " * 8, 1)
    DESCRIPTORS = [0, 1, 0].pack("lss")
    def poll_byte = syscall(PPOLL, [DESCRIPTORS].pack("p").unpack1("J"), 1, 0, 0, 0)
  RUBY

  kill = ->(_, process) { Process.kill(:KILL, process.pid) && nil }

  # Runs the program, and yields its stdin and process when it has written such a line to stderr. Returns this line and
  # all of stdout; nil if there is no such line in time.
  define_method(:reported) do |text, such = /so far/, &ending|
    ending ||= ->(input, _) { input.write("x") }
    command = [RbConfig.ruby, "-W0", "-I", Processes::LIB, "-e", program + text]
    Open3.popen3(Processes::Fresh.environment, *command, unsetenv_others: true) do |input, output, errors, process|
      line = Timeout.timeout(Processes::LIMIT) { errors.each_line.find { |candidate| candidate.match?(such) } }
      ending.call(input, process)
      input.close
      [line, output.read]
    rescue Timeout::Error
      kill.call(input, process)
    end
  end

  it "is reported on $stderr while it lasts, with the method, its caller's place and the C function" do
    line, output = reported(<<~RUBY)
      Heddle.run(stall_after: 0.02) { Fiber.schedule { p read_byte } }
    RUBY

    expect(line).to match(/\Aheddle: a fiber has kept its thread for \d\.\d+ s so far: /)
      .and match(/: Kernel#syscall called at -e:3, in \S+ \(libc\S*\)$/)
    expect(output).to eq "1\n"
  end

  it "is reported with the fiber's name" do
    line, = reported(<<~RUBY)
      Heddle.run(stall_after: 0.02) do
        Heddle.spin(name: "idle") { sleep }
        Heddle.spin(name: "worker") { Heddle.annotate("GET /7") { sleep(0) && read_byte } && exit! }
        Heddle.annotate("main") { sleep }
      end
    RUBY

    expect(line).to start_with(%(heddle: fiber "GET /7" has kept its thread for )).and include("so far: Kernel#syscall")
  end

  it "is reported with no name if the fiber has lost its name" do
    line, = reported(<<~RUBY)
      Heddle.run(stall_after: 0.02) { Fiber.schedule { Heddle.annotate("GET /7") { sleep(0) } && p(read_byte) } }
    RUBY

    expect(line).to start_with("heddle: a fiber has kept")
  end

  it "reaches receivers with the fiber's name after the fiber has ended" do
    output, = run_ruby(program + <<~RUBY)
      require "io/nonblock"
      stalls = Thread::Queue.new
      Heddle.on_stall { |stall| stalls << stall.fiber if stall.fiber }
      $stdin.reopen(IO.popen("while sleep 0.1; do echo; done"))
      $stdin.nonblock = false
      Heddle.run(stall_after: 0.02) do
        while stalls.empty?
          Heddle.await(Heddle.spin(name: "big") { read_byte })
          sleep 0.01 # Releases the GVL to the threads that report.
        end
      end
      puts stalls.pop
    RUBY

    expect(output).to eq(%(fiber "big"\n)).or match(/\A#<Fiber:0x\h+.*> "big"\n\z/)
  end

  # The following programs repeat it, as a thread that waits for a processor may stall elsewhere.
  it "is reported while the C code computes" do
    line, = reported(<<~RUBY, /to_s/, &kill)
      number = 1 << 60_000_000
      Heddle.run(stall_after: 0.02) { loop { number.to_s && sleep(0) } }
    RUBY

    expect(line).to match(/so far: Integer#to_s called at -e:\d+/)
  end

  it "is reported with the program's own line if a library calls the C code" do
    line, = reported(<<~RUBY, /JSON/, &kill)
      require "json"
      data = [Array.new(100_000) { |number| { "key" => [number.to_s, 1] } }] * 30
      GC.disable # The report would be of the collector.
      Heddle.run(stall_after: 0.02) { loop { JSON.generate(data) && sleep(0) } }
    RUBY

    expect(line).to match(/so far: JSON\S* called at \S+json\S+:\d+, from -e:9/)
  end

  it "is reported if a method of Ruby's own calls the C code" do
    line, = reported(<<~RUBY, /Marshal/, &kill)
      text = Marshal.dump(["text"] * 15_000_000)
      GC.disable
      Heddle.run(stall_after: 0.02) { loop { Marshal.load(text) && sleep(0) } }
    RUBY

    expect(line).to match(/so far: Marshal\.load called at -e:8/)
  end

  it "reaches receivers afterwards, with what was seen while it lasted" do
    output, = run_ruby(program + <<~RUBY)
      stall = nil
      Heddle.on_stall { |seen| stall ||= seen }
      Heddle.run(stall_after: 0.02) { Fiber.schedule { Integer.sqrt(10**400_000) until stall } }
      puts stall.ended?, stall.native_method, stall.location, stall.backtrace, stall.fiber
      p stall.native_function
    RUBY

    expect(output).to match(/\Afalse\nInteger\S+\n-e:8\n(-e:8:in .+\n)+#<Fiber:0x\h{16}.*\n".+"\n\z/)
  end

  it "keeps the system call that it is in, although a signal would end that" do
    line, output = reported(<<~RUBY)
      Heddle.run(stall_after: 0.02) { p poll_byte }
    RUBY

    expect(line).to match(/so far: in C code, in \S+ \(libc\S*\)$/)
    expect(output).to eq "1\n"
  end

  # The kernel continues the sleep by another system call.
  it "keeps the system call that it is in after a SIGSTOP, although a signal would end that" do
    sleep_call = RUBY_PLATFORM.start_with?("aarch64") ? 115 : 230
    command = [RbConfig.ruby, "-W0", "-I", Processes::LIB, "-e", program + <<~RUBY]
      second = [1, 0].pack("qq")
      Heddle.run(stall_after: 0.5) { p syscall(#{sleep_call}, 1, 0, [second].pack("p").unpack1("J"), 0) }
    RUBY
    Open3.popen3(Processes::Fresh.environment, *command, unsetenv_others: true) do |_, output, errors, process|
      task = "/proc/#{process.pid}"
      Thread.pass until File.read("#{task}/syscall").start_with?("#{sleep_call} ")
      Process.kill(:STOP, process.pid)
      Thread.pass until File.read("#{task}/stat").include?(") T ")
      Process.kill(:CONT, process.pid)

      expect([output.read, errors.read]).to match ["0\n", /so far: in C code/]
    end
  end

  it "keeps the program's handlers of signals" do
    line, output = reported(<<~RUBY)
      real_time = (40..64).to_a.reverse.first(3)
      real_time.each { |signal| trap(signal) { puts "handled" } }
      Heddle.run(stall_after: 0.02) { read_byte }
      real_time.each { |signal| Process.kill(signal, Process.pid) && sleep(0.01) }
    RUBY

    expect(line).to include("Kernel#syscall called at -e:3")
    expect(output).to eq "handled\n" * 3
  end

  it "is reported in a forked child of a process that has reported one" do
    line, output = reported(<<~RUBY)
      log = Object.new
      def log.write(line) = $written = line
      def log.flush = nil
      $stderr = log
      Heddle.run(stall_after: 0.02) do
        nil until $written
        sleep 0.001
        Process.wait(fork do
          Heddle.run(**(Fiber.scheduler ? {} : { stall_after: 0.02 })) { sleep(0.001) && p(read_byte) }
        end)
      end
    RUBY

    expect(line).to include("Kernel#syscall called at -e:3")
    expect(output).to eq "1\n"
  end

  it "is reported for one scheduler beside another" do
    line, output = reported(<<~RUBY)
      begin_reading = Thread::Queue.new
      other = Thread.new { Heddle.run(stall_after: 0.02) { begin_reading.pop && read_byte } }
      Heddle.run(stall_after: 0.02) { sleep 0.001 and begin_reading << true and other.join }
      puts "done"
    RUBY

    expect(line).to include("Kernel#syscall called at -e:3")
    expect(output).to eq "done\n"
  end

  it "survives garbage collections at each allocation" do
    line, = reported(<<~RUBY)
      GC.stress = true
      Heddle.run(stall_after: 0.02) { Fiber.schedule { read_byte } }
    RUBY

    expect(line).to match(/has kept its thread for .* so far: /)
  end

  it "is reported beside 30,000 fibers" do
    line, = reported(<<~RUBY, /syscall/, &kill)
      Heddle.run(stall_after: 0.5) do
        300.times { 100.times { Heddle.spin { sleep } } && Heddle.snooze }
        read_byte
      end
    RUBY

    expect(line).to include("Kernel#syscall called at -e:3")
  end

  it "may end while the scheduler is closed" do
    expect(run_ruby(program + <<~RUBY)).to match(["done\n", "", be_success])
      Heddle.on_stall { nil }
      40.times { |number| Heddle.run(stall_after: 0.01) { Integer.sqrt(10**(30_000 + (number * 1000))) } }
      puts "done"
    RUBY
  end
end
