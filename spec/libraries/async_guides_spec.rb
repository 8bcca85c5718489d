# frozen_string_literal: true

# The programs of Async's guides, with events in place of long sleeps, on a Heddle scheduler, and on Async's own for
# comparison. What async_tasks_spec.rb has is not repeated.
RSpec.describe "heddle/async and the guides of Async" do
  include Libraries

  let(:library) { "async" }
  let(:preamble) { "$stdout.sync = true\n" }

  programs = {
    # Getting started.
    "prints what a task returns to the caller of the first Async" => [<<~RUBY, "Hello World!\nThe number was: 5\n"],
      here { puts "Hello World!" }
      task = Async { sleep 0; 5 }
      puts "The number was: \#{task.wait}"
    RUBY
    "fetches in tasks of the caller's, of Sync's, or of a barrier" => [<<~RUBY, "[1,2]\n" * 3],
      require "async/barrier"
      def fetch(number) = sleep(0) && number
      def fetch_in(numbers, parent: Async::Task.current) = numbers.map { |n| parent.async { fetch(n) } }.map(&:wait)
      def fetch_all(numbers) = Sync { |parent| numbers.map { |n| parent.async { fetch(n) } }.map(&:wait) }
      here do
        puts fetch_in([1, 2]).inspect.delete(" ")
        puts fetch_all([1, 2]).inspect.delete(" ")
        puts fetch_in([1, 2], parent: Async::Barrier.new).inspect.delete(" ")
      end
    RUBY
    "performs requests of Net::HTTP side by side, and waits for a thread" => [<<~RUBY, %(["0", "1", "2"]\n:thread\n)],
      require "net/http"
      here do |task|
        server = TCPServer.new("127.0.0.1", 0)
        serving = task.async do
          connections = Array.new(3) { server.accept }
          connections.each do |connection|
            path = connection.gets[/\\d+/]
            nil until connection.gets == "\\r\\n"
            connection.write("HTTP/1.1 200 OK\\r\\nContent-Length: 1\\r\\nConnection: close\\r\\n\\r\\n\#{path}")
            connection.close
          end
        end
        port = server.addr[1]
        p Array.new(3) { |n| Async { Net::HTTP.get("127.0.0.1", "/\#{n}", port) } }.map(&:wait)
        serving.wait
        p Thread.new { :thread }.value
      end
    RUBY
    # Tasks.
    "runs the iterations of a loop side by side" => [<<~RUBY, "third\nsecond\nfirst\n"],
      here do
        gates = Array.new(3) { Queue.new }
        %w[first second third].each_with_index do |name, index|
          Async do
            gates[index].pop
            puts name
            gates[index - 1] << true
          end
        end
        gates.last << true
      end
    RUBY
    "waits for a barrier's first tasks, and cancels the remainder" => [<<~RUBY, "[:first, :second]\n[:cancelled]\n"],
      require "async/barrier"
      here do
        barrier = Async::Barrier.new
        rest = nil
        begin
          barrier.async { sleep 0; :first }
          rest = barrier.async { sleep }
          barrier.async { sleep 0; :second }
          done = []
          barrier.wait do |task|
            done << task.wait
            break if done.size >= 2
          end
          p done.sort
        ensure
          barrier.cancel
        end
        rest.wait
        p [rest.status]
      end
    RUBY
    "combines a barrier with a semaphore, outside of tasks, too" => [<<~RUBY, "[0, 1, 2, 3]\ntrue\n"],
      require "async/barrier"
      require "async/semaphore"
      barrier = Async::Barrier.new
      here do
        semaphore = Async::Semaphore.new(2, parent: barrier)
        inside = Queue.new
        most = 0
        done = []
        4.times do |job|
          semaphore.async do
            inside << true
            most = [most, inside.size].max
            sleep 0
            done << job
            inside.pop
          end
        end
        barrier.wait
        p done.sort, most <= 2
      ensure
        barrier.cancel
      end
    RUBY
    "cancels all tasks, each of which closes its socket" => [<<~RUBY, "[true, true, true]\n[:cancelled]\n"],
      require "socket"
      require "async/barrier"
      here do
        barrier = Async::Barrier.new
        sockets = []
        tasks = Array.new(3) do
          barrier.async do
            sockets.push(*(pair = UNIXSocket.pair))
            pair.first.read
          ensure
            pair&.first&.close
          end
        end
        sleep 0 until sockets.size == 6
        barrier.cancel
        tasks.each(&:wait)
        p sockets.values_at(0, 2, 4).map(&:closed?), tasks.map(&:status).uniq
      end
    RUBY
    "fails a task by its error, which each wait raises" => [<<~RUBY, "failed\nIt went Boom!\nIt went Boom!\n"],
      here do |task|
        failing = task.async(finished: false) { sleep 0; raise "Boom" }
        sleep 0 until failing.failed?
        puts failing.status
        2.times do
          failing.wait
        rescue
          puts "It went \#{$!}!"
        end
      end
    RUBY
    "lets the block of a time limit rescue it" => [<<~RUBY, "I timed out early!\n:rescued\n"],
      here do |task|
        value = task.with_timeout(0.001) do
          sleep
        rescue Async::TimeoutError
          puts "I timed out early!"
          :rescued
        end
        p value
      end
    RUBY
    "has periodic timers, from end to start and from start to start" => [<<~RUBY, "[3, 3]\n"],
      require "async/clock"
      here do |task|
        counts = [0, 0]
        first = task.async { sleep(0.001) until (counts[0] += 1) == 3 }
        run_next = Async::Clock.now
        second = task.async do
          until (counts[1] += 1) == 3
            run_next += 0.001
            remaining = run_next - Async::Clock.now
            sleep(remaining) if remaining > 0
          end
        end
        [first, second].each(&:wait)
        p counts
      end
    RUBY
    "keeps a cache fresh in a transient task, which the end of the program cancels" => [<<~RUBY, "cached\ntrue\n"],
      class Cache
        attr_reader :refresh

        def value
          @refresh ||= Async(transient: true) do
            loop do
              @value = "cached"
              sleep
            end
          ensure
            @refresh = nil
          end
          sleep 0 until @value
          @value
        end
      end
      cache = Cache.new
      here { puts cache.value }
      p cache.refresh.nil?
    RUBY
    # The scheduler.
    "prints the tree of tasks, and cancels a part" => [<<~RUBY, %(["nested", "subtask 0", "subtask 1"]\n:cancelled\n)],
      here do |task|
        nested = task.async(annotation: "nested") do |own|
          2.times { |index| own.async { |subtask| subtask.annotate("subtask \#{index}"); sleep } }
          sleep
        end
        text = lambda do
          out = StringIO.new
          task.print_hierarchy(out, backtrace: false)
          out.string.scan(/nested|subtask \\d/)
        end
        sleep 0 until text.call.size == 3
        p text.call
        nested.cancel
        sleep 0 until text.call.empty?
        p nested.status
      end
    RUBY
    "cancels the scheduler" => [<<~RUBY, "[:cancelled, :cancelled]\n"],
      tasks = []
      here do |task|
        started = Queue.new
        2.times { tasks << Async { started << true; sleep } }
        2.times { started.pop }
        Fiber.scheduler.cancel
        sleep
      end
      p tasks.map(&:status)
    RUBY
    # Thread safety.
    "loads what tasks share once, and lets them wait until it is free" => [<<~RUBY, "[1, 1]\nfree\n"],
      here do |task|
        mutex = Mutex.new
        data = nil
        loads = 0
        load = proc do
          data || mutex.synchronize { data ||= sleep(a_moment) && (loads += 1) }
        end
        p Array.new(8) { task.async(&load) }.map(&:wait).uniq.push(loads)

        condition = ConditionVariable.new
        usage = 2
        waiting = task.async do
          mutex.synchronize { condition.wait(mutex) while usage > 0 }
          puts "free"
        end
        2.times { task.async { mutex.synchronize { condition.signal if (usage -= 1) == 0 } } }
        waiting.wait
      end
    RUBY
    "gives each task variables of its own, and storage that it inherits" => [<<~RUBY, <<~TEXT],
      Fiber.attr_accessor :request
      here do |task|
        Fiber[:user] = 1
        Fiber.current.request = Thread.current[:connection] = :outer
        gate = Queue.new
        tasks = Array.new(2) do |number|
          task.async do |own|
            before = [Fiber.current.request, Thread.current[:connection], Fiber[:user]]
            Fiber.current.request = number
            Fiber[:user] += 1
            gate.pop
            [before, Fiber.current.request, own.async { Fiber[:user] }.wait, Thread.new { Fiber[:user] }.value]
          end
        end
        2.times { gate << true }
        tasks.each { |each| p each.wait }
        p [Fiber.current.request, Thread.current[:connection], Fiber[:user]]
      end
    RUBY
      [[nil, nil, 1], 0, 2, 2]
      [[nil, nil, 1], 1, 2, 2]
      [:outer, :outer, 1]
    TEXT
    # Best practices.
    "raises for a current task where there is none" => [<<~RUBY, "5\nRuntimeError\n"],
      def fetch(queue, parent: Async::Task.current) = parent.async { queue.pop }
      here { p fetch(Queue.new.push(5)).wait }
      begin
        fetch(Queue.new)
      rescue => e
        puts e.class
      end
    RUBY
    "has Barrier, with an idler, or with a semaphore" => [<<~RUBY, "[0, 1, 2]\n[:first]\n[0, 1, 2, 3]\n"],
      require "async/semaphore"
      require "async/idler"
      here do
        done = []
        Barrier { |barrier| 3.times { |number| barrier.async { sleep 0; done << number } } }
        p done.sort

        done = []
        Barrier do |barrier|
          barrier.async { sleep 0; :first }
          barrier.wait { |task| done << task.wait; break }
        end
        p done

        done = []
        Barrier(parent: nil) do |barrier|
          semaphore = Async::Semaphore.new(2, parent: barrier)
          4.times { |number| semaphore.async { sleep 0; done << number } }
        end
        p done.sort
      end
    RUBY
    "starts tasks by an idler" => [<<~RUBY, "[0, 1, 2]\n"],
      require "async/idler"
      here do
        idler = Async::Idler.new(0.8)
        p Array.new(3) { |number| idler.async { sleep 0; number } }.map(&:wait)
      end
    RUBY
    "shares data by queues, which a reader closes, and by limited ones" => [<<~RUBY, %(["a\\n", "b\\n"]\n[8, 20]\n)],
      require "async/queue"
      here do |task|
        input, output = IO.pipe
        queue = Async::Queue.new
        task.async do
          while (line = input.gets)
            queue.push(line)
          end
          queue.close
        end
        output.write("a\\nb\\n")
        output.close
        lines = []
        while (line = queue.pop)
          lines << line
        end
        p lines

        limited = Async::LimitedQueue.new(8)
        task.async do
          20.times { |number| limited.push(number) }
          limited.close
        end
        sleep 0 until limited.limited?
        size = limited.size
        sum = 0
        sum += 1 while limited.pop
        p [size, sum]
      end
    RUBY
    # Debugging.
    "prints in Fiber.blocking without a switch" => [<<~RUBY, "abab\n"]
      here do |task|
        first = task.async { Fiber.blocking { print "a"; Integer.sqrt(2) while (@spins = @spins.to_i + 1) < 200_000; print "b" } }
        task.async { Fiber.blocking { print "a"; print "b" } }.wait
        first.wait
        puts
      end
    RUBY
  }

  AsyncPlaces::ALL.each do |place, here|
    describe "on #{place}" do
      programs.each do |what, (program, expected)|
        it what do
          expect(printed(here + program)).to eq expected
        end
      end
    end
  end

  it "runs a reactor once at a time within another loop" do
    expect(printed(<<~RUBY)).to eq "Finished!\nfalse\n"
      require "heddle/async"
      Heddle::Async.default!
      reactor = Async::Reactor.new
      reactor.async { sleep a_moment; puts "Finished!" }
      nil while reactor.run_once
      p reactor.run_once
      Fiber.set_scheduler(nil)
    RUBY
  end
end
