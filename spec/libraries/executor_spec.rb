# frozen_string_literal: true

RSpec.describe "Heddle::Executor" do
  include Libraries

  let(:library) { "concurrent" }
  # `ended?` shuts an executor down and waits for its tasks, and `refusal` prints the message of an error.
  let(:preamble) { <<~RUBY }
    require "heddle/executor"
    def ended?(executor) = executor.shutdown && executor.wait_for_termination(30)
    def refusal
      yield
    rescue StandardError => e
      puts e.message
    end
  RUBY

  it "tells its state in a signal handler, where no lock can be taken" do
    expect(printed(<<~RUBY)).to eq "[true, false, 0]\n"
      executor = Heddle::Executor.new
      told = Queue.new
      trap("USR1") { told << [executor.running?, executor.shutdown?, executor.queue_length] }
      Process.kill(:USR1, Process.pid)
      p told.pop
    RUBY
  end

  describe "#post" do
    it "runs the task on the caller's thread, if the caller is a fiber of a Heddle scheduler" do
      expect(printed(<<~RUBY)).to eq "true\n"
        executor = Heddle::Executor.new
        Heddle.run { executor.post { p Thread.current == Thread.main } }
      RUBY
    end

    it "starts each task in no scope of the calling fiber, nor of the fiber whose task has ended before it" do
      expect(printed(<<~RUBY)).to eq "[:first, :queued, :stranger]\n"
        executor = Heddle::Executor.new(fibers: 1)
        Heddle.run do
          go = Queue.new
          ended = Queue.new
          posting = Heddle.spin do
            Heddle.run { executor.post { go.pop; ended << :first } }
            executor.post { go.pop; ended << :queued }
          end
          Heddle.await(posting)
          executor.post { go.pop; ended << :stranger }
          limited = Heddle.spin { Heddle.move_on_after(0.001) { Heddle.run { executor.post { nil }; sleep } } }
          Heddle.await(limited)
          3.times { go << true }
          p Array.new(3) { ended.pop }
        end
      RUBY
    end

    it "runs the task on a thread of the executor, if the caller has no scheduler" do
      expect(printed(<<~RUBY)).to eq "the executor\n"
        executor = Heddle::Executor.new(name: "the executor")
        executor.post { puts Thread.current.name }
        ended?(executor)
      RUBY
    end

    it "runs the task on a thread of the executor, if the caller is a root fiber, which blocks its thread" do
      expect(printed(<<~RUBY)).to eq "true\n"
        executor = Heddle::Executor.new
        Fiber.set_scheduler(Heddle::Scheduler.new)
        done = Concurrent::Event.new
        executor.post { done.set }
        p done.wait(30)
      RUBY
    end

    it "runs the task on a thread of the executor with `on: :thread`, whatever the caller is" do
      expect(printed(<<~RUBY)).to eq "false\n"
        executor = Heddle::Executor.new(on: :thread)
        Heddle.run { executor.post { p Thread.current == Thread.main } }
        ended?(executor)
      RUBY
    end

    it "returns before the task runs" do
      expect(printed(<<~RUBY)).to eq "posted\nruns\n"
        executor = Heddle::Executor.new
        # After a tick, fibers that were woken would run first.
        Heddle.run(tick: 60, quantum: 60) do
          executor.post { puts "runs" }
          puts "posted"
        end
      RUBY
    end

    it "lets two hundred tasks wait at the same time, with a limit of two hundred fibers" do
      expect(printed(<<~RUBY)).to eq "200\n"
        executor = Heddle::Executor.new(fibers: 200)
        latch = Concurrent::CountDownLatch.new(200)
        futures = Array.new(200) do
          Concurrent::Promises.future_on(executor) { latch.count_down; latch.wait(30) && 1 }
        end
        p Concurrent::Promises.zip(*futures).value!.sum
      RUBY
    end

    it "runs no more tasks at a time than the limit says" do
      expect(printed(<<~RUBY)).to eq "3\n"
        executor = Heddle::Executor.new(fibers: 3)
        begun, gate = Queue.new, Queue.new
        at_once = []
        20.times { executor.post { at_once << executor.length; begun << true; gate.pop } }
        3.times { begun.pop }
        20.times { gate << true }
        ended?(executor)
        p at_once.max
      RUBY
    end

    it "gives the task a copy of the caller's fiber storage, also if the task waits in the queue" do
      expect(printed(<<~RUBY)).to eq "[[0, nil], [1, nil]]\n"
        executor = Heddle::Executor.new(fibers: 1)
        seen = []
        2.times do |number|
          Fiber[:number] = number
          executor.post { seen << [Fiber[:number], Fiber[:left]]; Fiber[:left] = true }
        end
        ended?(executor)
        p seen
      RUBY
    end

    it "does not end the task when the fiber that posted it ends" do
      expect(printed(<<~RUBY)).to eq "finished\n"
        executor = Heddle::Executor.new
        Heddle.run { Heddle.await(Heddle.spin { executor.post { sleep(a_moment) && puts("finished") } }) }
      RUBY
    end

    it "preempts a task that computes on the executor's thread" do
      expect(printed(<<~RUBY)).to eq "true\n"
        executor = Heddle::Executor.new
        done = Concurrent::Event.new
        executor.post { nil until done.set? }
        executor.post { done.set }
        p ended?(executor)
      RUBY
    end

    it "lets tasks wait for tasks" do
      expect(printed(<<~RUBY)).to eq "64\n"
        executor = Heddle::Executor.new
        sum = lambda do |depth|
          Concurrent::Promises.future_on(executor) { depth.zero? ? 1 : Array.new(2) { sum.(depth - 1) }.sum(&:value!) }
        end
        p sum.(6).value!
      RUBY
    end

    it "continues after tasks that raise, exit or are killed" do
      expect(printed(<<~RUBY)).to eq "done\n[true, 5]\n"
        Concurrent.global_logger = Concurrent::NULL_LOGGER
        executor = Heddle::Executor.new(fibers: 1)
        executor.post { raise "an error" }
        executor.post { raise NotImplementedError }
        executor.post { exit }
        executor.post { Fiber.current.kill }
        executor.post { puts "done" }
        p [ended?(executor), executor.completed_task_count]
      RUBY
    end

    it "has the error of a fiber that a task schedules raised in the main thread, with Thread.abort_on_exception" do
      expect(printed(<<~RUBY)).to eq "lost\n:continues\n"
        Thread.report_on_exception = false
        Thread.abort_on_exception = true
        executor = Heddle::Executor.new
        gate, done = Queue.new, Queue.new
        executor.post { gate.pop && done << :continues }
        begin
          executor.post { Fiber.schedule { raise KeyError, "lost" } }
          sleep
        rescue KeyError => e
          puts e.message
        end
        gate << true
        p done.pop
      RUBY
    end

    it "ends a child that a task has forked by such an error, as its thread is the child's main thread" do
      expect(printed(<<~RUBY)).to eq "1\n"
        Thread.report_on_exception = false
        Thread.abort_on_exception = true
        executor = Heddle::Executor.new
        statuses = Queue.new
        executor.post do
          pid = fork do
            $stderr.reopen(File::NULL)
            Fiber.schedule { raise KeyError, "lost" }
            sleep
          end
          statuses << Process.wait2(pid).last.exitstatus
        end
        p statuses.pop
      RUBY
    end

    it "logs an error that is no StandardError" do
      expect(printed(<<~RUBY)).to eq "[3, \"NotImplementedError\"]\n"
        Concurrent.global_logger = ->(level, error, *) { p [level, error.class.name] }
        executor = Heddle::Executor.new
        executor.post { raise NotImplementedError }
        ended?(executor)
      RUBY
    end

    it "continues, and says so on standard error, if the logger raises" do
      expect(printed(<<~RUBY)).to eq <<~TEXT
        $stderr = $stdout
        Concurrent.global_logger = ->(*) { raise IOError, "no space" }
        executor = Heddle::Executor.new
        executor.post { raise KeyError, "lost" }
        executor.post { puts "done" }
        ended?(executor)
      RUBY
        Heddle::Executor: Concurrent.global_logger raised #<IOError: no space> and lost #<KeyError: lost>
        done
      TEXT
    end

    it "needs a block" do
      expect(printed(<<~RUBY)).to eq "Heddle::Executor#post needs a block\n"
        refusal { Heddle::Executor.new.post }
      RUBY
    end
  end

  describe "a full queue" do
    full = <<~RUBY
      gate = Queue.new
      executor = Heddle::Executor.new(fibers: 1, max_queue: 1, fallback_policy: POLICY)
      2.times { executor.post { gate.pop } }
    RUBY

    it "refuses a task by RejectedExecutionError" do
      expect(printed("#{full.sub("POLICY", ":abort")}refusal { executor.post { } }"))
        .to eq "Heddle::Executor#post: its queue is full (max_queue: 1)\n"
    end

    it "discards a task with `fallback_policy: :discard`" do
      expect(printed("#{full.sub("POLICY", ":discard")}p executor.post { puts :ran }")).to eq "false\n"
    end

    it "runs a task in the caller with `fallback_policy: :caller_runs`" do
      expect(printed("#{full.sub("POLICY", ":caller_runs")}p executor.post { p Thread.current == Thread.main }"))
        .to eq "true\ntrue\n"
    end
  end

  describe "#shutdown" do
    it "runs the tasks that wait in the queue, and refuses further ones" do
      expect(printed(<<~RUBY)).to eq "true\n[10, true, false]\n"
        ran = 0
        executor = Heddle::Executor.new(fibers: 2, fallback_policy: :discard)
        10.times { executor.post { sleep(a_moment) && ran += 1 } }
        p ended?(executor)
        p [ran, executor.shutdown?, executor.post { }]
      RUBY
    end

    it "can be waited for in a root fiber, on whose thread the tasks run" do
      expect(printed(<<~RUBY)).to eq "true\n"
        executor = Heddle::Executor.new
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { executor.post { sleep(a_moment) } }
        p ended?(executor)
      RUBY
    end
  end

  describe "#kill" do
    it "tells tasks that wait or compute to end, runs their `ensure`, and forgets the queue" do
      expect(printed(<<~RUBY)).to eq "[[:waited, :computed], true, 2]\n"
        begun = Queue.new
        ended = []
        executor = Heddle::Executor.new(fibers: 2)
        executor.post do begun << 1; sleep; ensure ended << :waited end
        executor.post do begun << 2; loop { }; ensure ended << :computed end
        executor.post { ended << :queued }
        2.times { begun.pop }
        executor.kill
        p [executor.wait_for_termination(30) && ended.sort.reverse, executor.shutdown?, executor.completed_task_count]
      RUBY
    end
  end

  describe "#remaining_capacity" do
    it "is that of the queue in which a task of the caller would wait, also if another one is full" do
      expect(printed(<<~RUBY)).to eq "[0, 0, 1]\n"
        executor = Heddle::Executor.new(fibers: 1, max_queue: 1)
        gate, begun = Queue.new, Queue.new
        fill = -> { 2.times { executor.post { begun << true; gate.pop } } && begun.pop }
        fill.call
        Heddle.run do
          fill.call
          other = Thread.new { Heddle.run { executor.remaining_capacity } }.value
          p [executor.remaining_capacity, Thread.new { executor.remaining_capacity }.value, other]
          4.times { gate << true }
        end
        ended?(executor)
      RUBY
    end

    it "is -1, any number, without max_queue" do
      expect(printed("p Heddle::Executor.new.remaining_capacity")).to eq "-1\n"
    end
  end

  it "opens nothing to try its options" do
    expect(printed(<<~RUBY)).to eq "0\n"
      GC.disable
      descriptors = -> { Dir.children("/proc/self/fd").size }
      before = descriptors.call
      Heddle::Executor.new(backend: :poll)
      p descriptors.call - before
    RUBY
  end

  it "starts no queued task on a thread that is killed" do
    expect(printed(<<~RUBY)).to eq "[1, true]\n"
      begun = Queue.new
      executor = Heddle::Executor.new(fibers: 1)
      thread = Thread.new { Heddle.run { 3.times { executor.post { begun << 1; sleep } }; sleep } }
      begun.pop
      thread.kill.join
      p [executor.completed_task_count, ended?(executor)]
    RUBY
  end

  it "starts a new thread after its thread was killed" do
    expect(printed(<<~RUBY)).to eq "[:again, true]\n"
      executor = Heddle::Executor.new
      thread = Concurrent::Promises.future_on(executor) { Thread.current }.value!
      thread.kill.join
      p [Concurrent::Promises.future_on(executor) { :again }.value!(30), ended?(executor)]
    RUBY
  end

  it "works in a child that a task forks, and in its parent" do
    expect(printed(<<~RUBY)).to eq "[:child, 1]\n[:parent, 1]\n"
      $stdout.sync = true
      executor = Heddle::Executor.new
      task = lambda do |name|
        p [name, Concurrent::Promises.future_on(executor) { executor.length - (name == :parent ? 1 : 0) }.value!(30)]
      end
      Concurrent::Promises.future_on(executor) do
        Process.wait(fork { task.(:child) && exit!(0) })
        task.(:parent)
      end.value!
    RUBY
  end

  it "loses no task of two threads of a forked child, which find it at the same time" do
    expect(printed(<<~RUBY)).to eq "[:done, :done, 2]\n"
      $stdout.sync = true
      executor = Heddle::Executor.new
      Concurrent::Promises.future_on(executor) { }.value!
      child = fork do
        begun, gate, made = Queue.new, Queue.new, 0
        queues = Heddle::Executor.const_get(:TaskQueues)
        tracing = TracePoint.new(:call) do |event|
          next unless event.method_id == :initialize && event.defined_class == queues && (made += 1) == 1
          begun << true
          gate.pop
        end
        tracing.enable
        post = -> { Thread.new { Concurrent::Promises.future_on(executor) { :done }.value!(30) } }
        threads = [post.call]
        begun.pop
        threads << post.call
        Thread.pass until threads.last.stop?
        gate << true
        values = threads.map(&:value)
        executor.shutdown
        executor.wait_for_termination
        p [*values, executor.completed_task_count]
        exit!(0)
      end
      Process.wait(child)
    RUBY
  end

  it "loses no task of four threads, when tasks are preempted everywhere" do
    expect(printed(<<~RUBY)).to eq "[true, 800, 800]\n"
      executor = Heddle::Executor.new(fibers: 7, tick: 0.0001, quantum: 0.0001)
      count = Concurrent::AtomicFixnum.new
      threads = Array.new(4) { Thread.new { 200.times { executor.post { 300.times { }; sleep(0); count.increment } } } }
      threads.each(&:join)
      p [ended?(executor), count.value, executor.completed_task_count]
    RUBY
  end

  wrong = {
    "fibers: 0" => /fibers: must be an Integer of at least 1, not 0/,
    "max_queue: nil" => /max_queue: must be an Integer of at least 0, not nil/,
    "fallback_policy: :wait" => /fallback_policy: must be :abort, :discard or :caller_runs, not :wait/,
    "on: :main" => /on: must be :caller or :thread, not :main/,
    "quantum: -1" => /quantum/
  }
  wrong.each do |arguments, message|
    it "refuses `#{arguments}`" do
      expect(printed("refusal { Heddle::Executor.new(#{arguments}) }")).to match message
    end
  end
end
