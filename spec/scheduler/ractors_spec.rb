# frozen_string_literal: true

# Each example has a process of its own: Ruby behaves differently from the first Ractor until the process ends.
RSpec.describe "A Ractor" do
  # Each program is run in a Ractor, with Heddle loaded and without.
  programs = {
    "File.open with a block" => "File.open('/dev/null') { 1 }",
    "IO#close" => "IO.pipe.each(&:close).map(&:closed?)",
    "IO#close_write and IO#close_read" => <<~RUBY,
      io = IO.popen("cat", "r+")
      io.close_write
      [io.read, io.close_read, io.closed?]
    RUBY
    "IO#reopen" => "IO.pipe { |one, _| IO.pipe { |two, input| one.reopen(two); input << 'x'; one.readpartial(1) } }",
    "IO#pwrite" => "File.open(IO::NULL, 'w') { |file| file.pwrite('abc', 1) }",
    "IO#close of an IO on which a thread of the Ractor waits" => <<~RUBY,
      reader, writer = IO.pipe
      thread = Thread.new { Thread.current.report_on_exception = false; reader.read }
      Thread.pass until thread.stop?
      reader.close
      [(thread.value rescue $!), writer.close]
    RUBY
    "IOs that are collected" => "10.times { IO.pipe }; GC.start; IO.pipe.each(&:close).size",
    "Fiber#raise" => <<~RUBY,
      fiber = Fiber.new { Fiber.yield rescue $! }
      fiber.resume
      fiber.raise("out")
    RUBY
    "Fiber#raise of a fiber that has ended" => "fiber = Fiber.new {}; fiber.resume; (fiber.raise('out') rescue $!)",
    "Fiber#kill" => <<~RUBY,
      seen = []
      fiber = Fiber.new { begin Fiber.yield; ensure seen << 1; end }
      fiber.resume
      [fiber.kill.alive?, seen]
    RUBY
    "Fiber#kill of a fiber that has not begun" => "Fiber.new {}.kill.alive?",
    # An interrupt may wake what waits with a limit, so its value is not compared.
    "Mutex#sleep" => "mutex = Mutex.new.lock; mutex.sleep(a_moment); mutex.owned?",
    "ConditionVariable#wait" => <<~RUBY,
      lock, condition, waiting = Mutex.new, ConditionVariable.new, false
      thread = Thread.new { lock.synchronize { waiting = true; condition.wait(lock).class } }
      Thread.pass until lock.synchronize { waiting }
      lock.synchronize { condition.signal }
      lock.synchronize { condition.wait(lock, 0.001) }
      thread.value
    RUBY
    "Monitor" => <<~RUBY,
      monitor = Monitor.new
      condition = monitor.new_cond
      monitor.synchronize { condition.wait(0.001) }
      monitor.mon_locked?
    RUBY
    "Thread#raise" => <<~RUBY,
      thread = Thread.new { Thread.current.report_on_exception = false; sleep }
      Thread.pass until thread.stop?
      thread.raise("out")
      [(thread.value rescue $!), (Thread.current.raise("here") rescue $!)]
    RUBY
    "Thread.handle_interrupt" => <<~RUBY,
      [:immediate, :never, :now].map { |timing| Thread.handle_interrupt(IndexError => timing) { 1 } rescue $! }
    RUBY
    "Thread#status" => "[Thread.current.status, Thread.new {}.join.status]",
    "File#flock" => "File.open('/dev/null') { |file| file.flock(File::LOCK_SH) }",
    "PTY.open" => "PTY.open.each(&:close).size",
    "Timeout.timeout" => "Timeout.timeout(60) { 1 }",
    "BasicSocket#close_write and BasicSocket#close_read" => <<~RUBY,
      one, two = UNIXSocket.pair
      one.close_write
      [two.read, two.close_read, two.close]
    RUBY
    "Kernel#trap" => "[trap('USR1') {}, trap('USR1', 'DEFAULT').class, (trap('KILL') {} rescue $!)]",
    "Signal.trap" => "[Signal.trap('USR1', 'IGNORE'), Signal.trap('USR1', 'DEFAULT')]",
    "Enumerator#next" => "enum = [1, 2].each; [enum.next, enum.next]",
    "Thread and Queue" => "queue = Queue.new; Thread.new { queue << 1 }; queue.pop",
    "fork" => "begin Process.wait(fork { exit!(3) }); $?.exitstatus; rescue => e; e; end",
    "Fiber.schedule" => "(Fiber.schedule {} rescue $!)",
    "another scheduler" => <<~RUBY
      scheduler = Class.new do
        %i[block unblock kernel_sleep io_wait close fiber_interrupt].each { |name| class_eval "def \#{name}(*) = nil" }
        def fiber(&block) = Fiber.new(blocking: false, &block).tap(&:resume)
      end
      Fiber.set_scheduler(scheduler.new)
      Fiber.schedule { IO.pipe { |reader, writer| writer << "x"; reader.readpartial(1) } }
      Fiber.set_scheduler(nil)
    RUBY
  }

  # Returns what the programs print, one line for each.
  def outcomes(programs, preamble)
    output, errors, status = run_ruby(<<~RUBY)
      require "monitor"
      require "pty"
      require "socket"
      require "timeout"
      #{preamble}
      Warning[:experimental] = false
      ractor = Ractor.new(#{programs.inspect}) do |programs|
        programs.map { |program| eval(program).inspect rescue $!.inspect }
      end
      puts ractor.respond_to?(:value) ? ractor.value : ractor.take
    RUBY
    expect([errors, status.success?]).to eq ["", true]
    output.lines(chomp: true)
  end

  loaded = 'require "heddle"; Heddle.const_get(:SignalHandlers).patch_trap; Heddle.run { YieldingFiber.schedule {} }'
  outcome = nil

  before { outcome ||= [outcomes(programs.values, ""), outcomes(programs.values, loaded)] }

  programs.each_key.with_index do |name, index|
    it "behaves in #{name} as without Heddle" do
      plain, with_heddle = outcome

      expect(with_heddle[index]).to eq plain[index]
    end
  end

  it "has an example of each method that Heddle replaces" do
    output, = run_ruby(<<~RUBY)
      require "pty"
      require "socket"
      #{loaded}
      heddle = ->(owner) { owner.inspect.match?(/\\A(#<Class:)?Heddle\\b/) }
      ObjectSpace.each_object(Module).reject(&heddle).each do |owner|
        prepended = owner.ancestors.take_while { |ancestor| !ancestor.equal?(owner) }.select(&heddle)
        prepended.each { |one| puts one.instance_methods(false).map { |name| "\#{owner}#\#{name}" } }
      end
    RUBY
    replaced = output.lines(chomp: true).map { |name| name.sub(/#<Class:(.+)>#/, '\\1.').delete_prefix("Thread::") }
    # What `fork`, `Signal.trap` and `Timeout.timeout` call, or do.
    covered = programs.keys.join(" ").split + %w[Process._fork Kernel.trap Timeout#timeout]

    expect([replaced.size, replaced - covered]).to match [be > 10, []]
  end

  it "may make Heddle's semaphores and barriers" do
    program = "[Heddle::Semaphore.new(2).acquire, Heddle::Barrier.new.class]"

    expect(outcomes([program], 'require "heddle"')).to eq ["[true, Heddle::Barrier]"]
  end

  {
    "Heddle::Scheduler.new" => "Heddle::Scheduler.new",
    "Heddle.run" => "Heddle.run {}",
    "Heddle::YieldingFiber#resume" => "Heddle::YieldingFiber.new {}.resume"
  }.each do |name, program|
    it "raises from #{name} that Heddle works in the main Ractor only" do
      expect(outcomes([program], 'require "heddle"')).to match [/Ractor::UnsafeError: .* works only in the main Ractor/]
    end
  end

  it "may use the parts of Heddle that need no scheduler" do
    program = "[Heddle.without_preemption { 1 }, Heddle.state(Fiber.current), Heddle.state(Fiber.new {})]"

    expect(outcomes([program], 'require "heddle"')).to eq ["[1, :running, :waiting]"]
  end

  it "may name its fibers while a trace is recorded" do
    begin_trace = <<~RUBY
      require "heddle"
      begun = Queue.new
      Thread.new { Heddle.trace(File::NULL) { begun.push(1) && sleep } }
      begun.pop
    RUBY

    expect(outcomes(["Heddle.annotate('name') { 1 }"], begin_trace)).to eq ["1"]
  end

  # Ruby 4.0 announces each collection in the Ractor that collects.
  it "may collect garbage while a trace is recorded, which does not show that" do
    Dir.mktmpdir do |folder|
      path = File.join(folder, "trace.json")
      output, errors, = run_ruby(<<~RUBY, path)
        require "heddle"
        Warning[:experimental] = false
        def wait_for(ractor) = ractor.respond_to?(:value) ? ractor.value : ractor.take

        # Ruby collects when the first Ractor begins, and from now on in GC.start only.
        wait_for(Ractor.new { nil })
        GC.disable
        before = GC.count
        Heddle.run do
          Heddle.trace(ARGV.first) do
            waiter = Thread.new { wait_for(Ractor.new { 20.times { GC.start } }) }
            # Records events in between.
            sleep(0.0005) while waiter.alive?
          end
        end
        puts GC.count - before
      RUBY

      expect([Integer(output), errors, TraceFile.read(path).slices("gc")]).to match [be >= 20, "", []]
    end
  end

  {
    "that raise in their own thread" => "50_000.times { Thread.current.raise(\"out\") rescue nil }",
    "that kill fibers" => <<~RUBY
      200.times do
        victim = nil
        # Until it is preempted.
        Fiber.schedule { (victim = YieldingFiber.new { loop { nil } }).resume }
        victim.kill
      end
    RUBY
  }.each do |fibers, program|
    it "may collect garbage beside fibers #{fibers}", :regression do
      output, errors, = run_ruby(<<~RUBY)
        require "heddle"
        Warning[:experimental] = false
        2.times { Ractor.new { loop { Array.new(1000) { "x" * 100 } } } }
        Heddle.run { #{program} }
        $stdout.syswrite("done")
        exit!
      RUBY

      expect([output, errors]).to eq ["done", ""]
    end
  end

  it "does not disturb a scheduler of the main Ractor" do
    output, = run_ruby(<<~RUBY)
      require "heddle"
      Warning[:experimental] = false
      ractors = Array.new(2) do
        Ractor.new { 200.times { IO.pipe.each(&:close); Fiber.new {}.kill; Array.new(100) { "x" * 100 } } }
      end
      Heddle.run do
        reader, writer = IO.pipe
        Fiber.schedule { 200.times { writer << "x"; sleep(0) }; writer.close }
        puts reader.read.size
      end
      ractors.each { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }
      puts "done"
    RUBY

    expect(output).to eq "200\ndone\n"
  end

  # Ruby 3.3 and 3.4 wait for another Ractor's collection where they look up an instance variable of a thread.
  it "may collect garbage while ticks find no other fiber due" do
    output, = run_ruby(<<~RUBY)
      require "heddle"
      Warning[:experimental] = false

      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # For a time only, as Ruby gives other Ractors hardly any between two collections.
      finish = now + 2
      2.times do
        Ractor.new(finish) { |finish| (GC.start(full_mark: false); sleep(0.0001)) until now > finish }
      end
      Heddle.run(preempt: :all, tick: 0.001) do
        until now > finish
          Fiber.schedule { sleep(0.05) } # at least
          100_000.times { Integer.sqrt(2) }
        end
        $stdout.syswrite("done")
        exit!(0)
      end
    RUBY

    expect(output).to eq "done"
  end

  it "may collect garbage while stalls are looked at, if it has begun before" do
    output, = run_ruby(<<~RUBY)
      require "heddle"
      Warning[:experimental] = false

      def call_deeply(depth, &) = depth.zero? ? yield : instance_exec { call_deeply(depth - 1, &) }
      def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

      # For a time only, as Ruby gives other Ractors hardly any between two collections.
      Ractor.new(now + 5) { |finish| (GC.start; sleep(0.001)) until now > finish }
      Heddle.on_stall { nil }
      Heddle.run(stall_after: 0.01) do
        25.times do
          finish = now + 0.012
          Fiber.schedule { call_deeply(80) { nil until now > finish } }
        end
      end
      $stdout.syswrite("done")
      exit!(0)
    RUBY

    expect(output).to eq "done"
  end
end
