# frozen_string_literal: true

# Programs as Async's guides have them, on a Heddle scheduler, and on Async's own for comparison.
RSpec.describe "heddle/async" do
  include Libraries

  let(:library) { "async" }
  let(:preamble) { "$stdout.sync = true\n" }

  programs = {
    "returns the values of tasks, and raises their errors in the wait for them" => [<<~RUBY, %(5\n"failed"\n:failed\n)],
      here do |task|
        puts task.async { sleep 0; 5 }.wait
        failing = task.async(finished: false) { sleep 0; raise "failed" }
        begin
          failing.wait
        rescue => e
          p e.message
        end
        p failing.status
      end
    RUBY
    "cancels a task, and its children" => [<<~RUBY, "parent\nchild\n[:cancelled, :cancelled]\n[nil, nil]\n"],
      here do |task|
        child = nil
        parent = task.async do |own|
          child = own.async do sleep; ensure; puts "child"; end
          sleep
        ensure
          puts "parent"
        end
        sleep 0 until child
        parent.cancel
        values = [parent, child].map { |each| each.wait }
        p [parent, child].map(&:status), values
      end
    RUBY
    "lets a task cancel itself, its parent, and what is deferred" => [<<~RUBY, "[:cancelled]\nwhole\n"],
      here do |task|
        itself = task.async { |own| own.cancel; puts "never" }
        parent = task.async { |own| own.async { own.cancel }; sleep }
        gate = Queue.new
        deferred = task.async { |own| own.defer_cancel { gate.pop; gate.pop; @whole = "whole" }; puts "never" }
        gate << true
        sleep 0 until gate.num_waiting == 1 && gate.empty?
        deferred.cancel
        gate << true
        [itself, parent, deferred].each { |each| each.wait }
        p [itself, parent, deferred].map(&:status).uniq
        puts @whole
      end
    RUBY
    "stops transient tasks when no others are left" => [<<~RUBY, "work\nstopped\n"],
      here do |task|
        task.async(transient: true) do sleep; ensure; puts "stopped"; end
        task.async { sleep 0; puts "work" }
      end
    RUBY
    "ends a transient task that became one" => [<<~RUBY, "stopped\n"],
      here do |task|
        other = task.async do sleep; ensure; puts "stopped"; end
        task.async { sleep 0; other.transient = true }
      end
    RUBY
    "has time limits, which can be moved" => [<<~RUBY, "Async::TimeoutError\nRuntimeError limit\nmoved\nAsync::Timeout::CancelledError\n"],
      here do |task|
        limit = ->(*arguments, &block) { task.with_timeout(*arguments, &block) }
        begin
          limit.call(0.01) { sleep }
        rescue => e
          puts e.class
        end
        begin
          limit.call(0.01, RuntimeError, "limit") { sleep }
        rescue => e
          puts [e.class, e.message].join(" ")
        end
        limit.call(60) { |timeout| timeout.adjust(-60); sleep } rescue puts "moved"
        begin
          limit.call(60) { |timeout| timeout.cancel!; timeout.duration = 1 }
        rescue => e
          puts e.class
        end
      end
    RUBY
    "has barriers, semaphores, conditions, queues and notifications" => [<<~RUBY, <<~TEXT],
      require "async/barrier"
      require "async/semaphore"
      require "async/queue"
      require "async/notification"
      here do |task|
        barrier = Async::Barrier.new
        squares = Array.new(4) { |number| barrier.async { sleep 0; number * number } }
        barrier.wait
        p squares.map(&:wait)

        semaphore = Async::Semaphore.new(2)
        running = most = done = 0
        Array.new(6) do
          semaphore.async do
            running += 1
            most = [most, running].max
            sleep 0
            running -= 1
            done += 1
          end
        end.each(&:wait)
        p [done, running, most <= 2]

        condition = Async::Condition.new
        waiting = task.async { condition.wait }
        condition.signal(:signal)
        p waiting.wait

        queue = Async::Queue.new
        taking = task.async { Array.new(2) { queue.dequeue } }
        [1, 2].each { |each| queue.push(each) }
        p taking.wait

        notification = Async::Notification.new
        waiting = task.async { notification.wait }
        notification.signal(:notified)
        p waiting.wait
      end
    RUBY
      [0, 1, 4, 9]
      [6, 0, true]
      :signal
      [1, 2]
      :notified
    TEXT
    "ends by an error that is no StandardError, cancelling the others" => [<<~RUBY, "cancelled\nNotImplementedError\n"],
      begin
        here do |task|
          task.async do sleep; ensure; puts "cancelled"; end
          task.async { sleep 0; raise NotImplementedError }
          sleep
        end
      rescue NotImplementedError => e
        puts e.class
      end
    RUBY
    "starts tasks by Fiber.schedule, which the task awaits and cancels" => [<<~RUBY, "connection\n[:cancelled]\n"],
      here do |task|
        waiting = done = nil
        serving = task.async do
          Fiber.schedule { |connection| waiting = connection; sleep }
          Fiber.schedule { puts "connection"; done = Async::Task.current }
          sleep
        end
        sleep 0 until waiting && done
        serving.cancel
        waiting.wait
        p [waiting.status]
      end
    RUBY
    "runs Sync within tasks and at the top" => [<<~RUBY, "1\n2\n"]
      here { |task| puts Sync { |same| same.equal?(task) ? 1 : 0 } }
      puts Sync { |task| task.async { 2 }.wait }
    RUBY
  }

  AsyncPlaces::ALL.each do |place, here|
    describe "on #{place}" do
      it "starts tasks at once, and awaits them" do
        # Without a tick, which could preempt the task before its first line.
        unpreempted = here.sub("preempt: :all", "preempt: :all, quantum: 60, tick: 60")
        expect(printed(unpreempted + <<~RUBY)).to eq "1\n2\n3\n4\n"
          here do |task|
            gate = Queue.new
            puts 1
            task.async { puts 2; gate.pop; puts 4 }
            puts 3
            gate << true
          end
        RUBY
      end

      programs.each do |what, (program, expected)|
        it what do
          expect(printed(here + program)).to eq expected
        end
      end
    end
  end

  it "keeps transient tasks while the block of Heddle.run runs, however it is preempted" do
    expect(printed(<<~RUBY)).to eq "served\nstopped\n"
      require "heddle/async"
      Heddle.run(preempt: :all) do
        requests, responses = Queue.new, Queue.new
        Async(transient: true) do loop { responses << requests.pop }; ensure; puts "stopped"; end
        turn = nil
        Heddle.spin { turn = true }
        nil until turn
        requests << "served"
        puts responses.pop
      end
    RUBY
  end

  it "ends the tasks of a scheduler that is set for the thread" do
    expect(printed(<<~RUBY)).to eq "work\nstopped\nNotImplementedError\n"
      require "heddle/async"
      Fiber.set_scheduler(Heddle::Scheduler.new(preempt: :all))
      Fiber.schedule do
        Async(transient: true) do sleep; ensure; puts "stopped"; end
        Async { sleep 0; puts "work"; raise NotImplementedError }
      end
      begin
        Fiber.set_scheduler(nil)
      rescue NotImplementedError => e
        puts e.class
      end
    RUBY
  end

  it "cancels the tasks of a reactor that is closed, also those that wait in an ensure clause" do
    expect(printed(<<~RUBY)).to eq "ensure\nclosed\n"
      require "heddle/async"
      Heddle::Async.default!
      reactor = Async::Reactor.new
      reactor.async do sleep; ensure; puts "ensure"; sleep; end
      Fiber.set_scheduler(nil)
      puts "closed"
    RUBY
  end

  {
    "raises an error that is no StandardError though the block waits for another task" => [<<~RUBY, "x\n"],
      begin
        Heddle.run do
          Sync do |task|
            serving = task.async { sleep }
            task.async { sleep 0; raise NotImplementedError, "x" }
            serving.wait
          end
        end
      rescue NotImplementedError => e
        puts e.message
      end
    RUBY
    "ends a transient task that is started after the block's end" => [<<~RUBY, "ended\n"],
      gate = Queue.new
      Heddle.run do
        Fiber.schedule { gate.pop; Async(transient: true) { sleep } }
        Fiber.schedule { sleep 0; gate << true }
      end
      puts "ended"
    RUBY
    "ends the tasks though the scheduler was interrupted" => [<<~RUBY, "ended\n"],
      Heddle.run do
        Async do |task|
          task.async(transient: true) { sleep }
          task.reactor.interrupt
          sleep 0
        end
      end
      puts "ended"
    RUBY
    "lets tasks end in order if the block raises" => [<<~RUBY, "commit\nensure\nended\nboom\n"],
      gate = Queue.new
      begin
        Heddle.run do
          Async { |task| task.defer_stop { sleep 0; puts "commit"; gate << true } }
          Async do sleep; ensure; gate.pop; puts "ensure"; sleep 0; puts "ended"; end
          raise "boom"
        end
      rescue => e
        puts e.message
      end
    RUBY
    "lets ensure clauses of children wait if the program is interrupted" => [<<~RUBY, "ensure\nended\nInterrupt\n"],
      begin
        Heddle.run do
          Sync do |task|
            task.async do sleep; ensure; puts "ensure"; sleep 0; puts "ended"; end
            task.async { sleep 0; Process.kill(:INT, Process.pid) }
            sleep
          end
        end
      rescue Interrupt => e
        puts e.class
      end
    RUBY
    "has time limits by an exception, below zero, and none after the block" => [<<~RUBY, <<~TEXT]
      Heddle.run do
        Sync do |task|
          raised = lambda do |*arguments|
            task.with_timeout(*arguments) { |_| sleep }
          rescue StandardError => e
            p e
          end
          raised.call(0, RuntimeError.new("instance"), "message")
          raised.call(-1)
          left = task.with_timeout(60) { |timeout| timeout }
          begin
            left.duration = 1
          rescue => e
            p e.class
          end
        end
      end
    RUBY
      #<RuntimeError: message>
      #<Async::TimeoutError: execution expired>
      Async::Timeout::CancelledError
    TEXT
  }.each do |what, (program, expected)|
    it what do
      expect(printed("require \"heddle/async\"\n#{program}")).to eq expected
    end
  end

  it "starts fibers by Fiber.schedule outside of tasks, and where it has options" do
    expect(printed(<<~RUBY)).to eq "[Fiber, nil]\n" * 2
      require "heddle/async"
      describe = -> { p [Fiber.current.class, Async::Task.current?] }
      Heddle.run do
        Fiber.schedule(&describe)
        Async { Fiber.schedule(storage: true, &describe) }
      end
    RUBY
  end

  it "starts tasks by Fiber.schedule in tasks, and returns their fibers, also of a lambda that takes nothing" do
    expect(printed(<<~RUBY)).to eq "[true, true]\n"
      require "heddle/async"
      Heddle.run do
        Sync do |task|
          seen = []
          note = -> { seen << [Fiber.current, Async::Task.current] }
          fibers = [Fiber.schedule { note.call }, Fiber.schedule(&note)]
          p fibers.zip(seen).map { |fiber, (current, own)| fiber.equal?(current) && own != task }
        end
      end
    RUBY
  end

  it "runs the code of Async's gems in a new task before the starter continues" do
    expect(printed(<<~RUBY)).to eq "0\n"
      require "heddle/async"
      require "async/semaphore"
      late = 0
      Heddle.run(preempt: :all, tick: 0.0001) do
        Heddle.spin(background: true) { loop { sleep 0 } }
        Sync do |task|
          semaphore = Async::Semaphore.new(1000)
          # The new task counts itself.
          1000.times { |number| semaphore.async { sleep }; late += 1 if semaphore.count != number + 1 }
          task.children.each(&:cancel)
        end
      end
      p late
    RUBY
  end

  it "cancels a task later only when it waits, also if it has run for longer than a tick" do
    expect(printed(<<~RUBY)).to eq "continues\ncancelled\n"
      require "heddle/async"
      require "#{Computing::PATH}"
      Heddle.run(preempt: :none, tick: 0.0001) do
        Async do |task|
          Computing.compute_for(0.001)
          task.cancel(true)
          puts "continues"
          sleep
        ensure
          puts "cancelled"
        end
      end
    RUBY
  end

  it "runs a fiber that was pushed when its pusher waits, also if that has run for longer than a tick" do
    expect(printed(<<~RUBY)).to eq "pusher\npushed\n"
      require "heddle/async"
      require "#{Computing::PATH}"
      Heddle.run(preempt: :none, tick: 0.0001) do
        Async do
          Computing.compute_for(0.001)
          Fiber.scheduler.push(Fiber.new { puts "pushed" })
          puts "pusher"
        end
      end
    RUBY
  end

  it "lets the fiber continue first that has waited for a semaphore, ahead of fibers that could take it" do
    expect(printed(<<~RUBY)).to eq "waiting\nlater\n"
      require "heddle/async"
      require "async/semaphore"
      Heddle.run(preempt: :none) do
        Sync do |task|
          semaphore = Async::Semaphore.new(1)
          semaphore.acquire
          task.async { semaphore.acquire { puts "waiting" } }
          task.async { |own| own.yield || semaphore.acquire { puts "later" } }
          semaphore.release
        end
      end
    RUBY
  end

  it "lets that fiber continue ahead of one that has started the fiber which releases the semaphore, too" do
    expect(printed(<<~RUBY)).to eq "waiting\nlater\n"
      require "heddle/async"
      require "async/semaphore"
      Heddle.run(preempt: :none) do
        Sync do |task|
          semaphore = Async::Semaphore.new(1)
          semaphore.acquire
          task.async { semaphore.acquire { puts "waiting" } }
          task.async { semaphore.release }
          semaphore.acquire { puts "later" }
        end
      end
    RUBY
  end

  it "lets other fibers run beside two that pass control to each other", :regression do
    expect(printed(<<~RUBY)).to eq "others run\n"
      require "heddle/async"
      Heddle.run(preempt: :none) do
        Sync do |task|
          scheduler = Fiber.scheduler
          fibers = []
          pair = [1, 0].map do |other|
            task.async do
              fibers << Fiber.current
              scheduler.transfer
              1000.times { scheduler.resume(fibers[other]) }
            end
          end
          scheduler.push(fibers.first)
          2.times { scheduler.yield }
          puts(pair.all?(&:running?) ? "others run" : "others waited")
        end
      end
    RUBY
  end

  it "has no load at first" do
    expect(printed(<<~RUBY)).to eq "true\n"
      require "heddle/async"
      Heddle.run { p Fiber.scheduler.load < 0.1 }
    RUBY
  end

  it "makes tasks fibers that Heddle names and lists" do
    expect(printed(<<~RUBY)).to eq %(["named", nil, "later"]\n)
      require "heddle/async"
      Heddle.run do
        Sync do |task|
          tasks = [task.async(annotation: "named") { sleep }, task.async { sleep },
                   task.async { |own| own.annotate("later"); sleep }]
          infos = tasks.map { |each| Heddle.fibers.find { |info| info.fiber.equal?(each.fiber) } }
          p infos.map(&:name)
          tasks.each(&:cancel)
        end
      end
    RUBY
  end

  it "preempts a task that computes" do
    expect(printed(<<~RUBY)).to eq "preempted\n"
      require "heddle/async"
      Heddle::Async.default!(preempt: :all)
      Async do |task|
        turn = nil
        task.async { turn = sleep(0) && "preempted" }
        nil until turn
        puts turn
      end
    RUBY
  end

  it "takes HEDDLE_ASYNC=preempt for a program that does not name Heddle" do
    expect(printed(<<~RUBY, environment: { "HEDDLE_ASYNC" => "preempt" })).to eq "Heddle::Scheduler\n"
      require "heddle/async"
      Async { puts Fiber.scheduler.class }
    RUBY
  end

  it "leaves Async its own scheduler without default!, and where a selector is given" do
    expect(printed(<<~RUBY)).to eq "Async::Reactor\nAsync::Reactor\n"
      require "heddle/async"
      Async { puts Fiber.scheduler.class }
      Heddle::Async.default!
      reactor = Async::Reactor.new(selector: IO::Event::Selector.new(Fiber.current))
      puts reactor.class
      Fiber.set_scheduler(nil)
    RUBY
  end

  it "has the tasks of a forked child apart from its parent's" do
    expect(printed(<<~RUBY)).to eq "child\nparent\n"
      require "heddle/async"
      Heddle.run do
        Sync do |task|
          waiting = task.async { sleep }
          Process.wait(fork do
            Heddle.run { Async { puts "child" } }
            exit!(0)
          end)
          waiting.cancel
          puts "parent"
        end
      end
    RUBY
  end

  it "refuses an unknown value of HEDDLE_ASYNC, and options that the scheduler refuses" do
    expect(printed(<<~RUBY)).to eq "HEDDLE_ASYNC=all: must be preempt\nunknown keyword: :preempts\n"
      ENV["HEDDLE_ASYNC"] = "all"
      begin
        require "heddle/async"
      rescue ArgumentError => e
        puts e.message
      end
      begin
        Heddle::Async.default!(preempts: :all)
      rescue ArgumentError => e
        puts e.message
      end
    RUBY
  end
end
