# frozen_string_literal: true

require "stringio"

# A fiber that is told to end, and what it can do about it.
RSpec.describe "The end of a fiber" do
  let(:grace) { 0.1 }

  # Swallows whatever ends the block, for ever.
  def swallow
    loop do
      yield
    rescue Exception # rubocop:disable Lint/RescueException
      nil
    end
  end

  # What is written to $stderr meanwhile.
  def reported
    before = $stderr
    $stderr = StringIO.new
    yield
    $stderr.string
  ensure
    $stderr = before
  end

  # Runs a fiber, lets it begin, tells it to end, and waits for that.
  def terminated(**, &block)
    Heddle.run(**) do
      fiber = Heddle.spin(&block)
      Heddle.snooze
      Heddle.terminate(fiber)
      Heddle.await(fiber).first
    end
  end

  describe "that the fiber swallows" do
    it "is raised again at its next wait" do
      events = []
      terminated do
        begin
          sleep
        rescue Exception # rubocop:disable Lint/RescueException
          events << :swallowed
        end
        sleep
        events << :slept
      end

      expect(events).to eq([:swallowed])
    end

    it "does not change its value if it does not wait again" do
      value = terminated do
        sleep
      rescue Exception # rubocop:disable Lint/RescueException
        :value
      end

      expect(value).to eq(:value)
    end

    {
      "next" => lambda {
        [1].each do
          sleep
        ensure
          next
        end
      },
      "break" => lambda {
        loop do
          sleep
        ensure
          break
        end
      },
      "throw" => lambda {
        catch(:out) do
          sleep
        ensure
          throw(:out)
        end
      }
    }.each do |way, swallow_once|
      it "with #{way} in an ensure is raised again at its next wait" do
        swallowed = 0
        terminated do
          swallow_once.call
          swallowed += 1
          sleep
          swallowed += 1
        end

        expect(swallowed).to eq(1)
      end
    end

    it "is raised again in the body of a rescue of something else" do
      swallowed = 0
      terminated do
        raise IOError
      rescue IOError
        3.times do
          sleep
        rescue Exception # rubocop:disable Lint/RescueException
          swallowed += 1
        end
        sleep
        swallowed = :slept
      end

      expect(swallowed).to eq(3)
    end

    it "lets others have their turns" do
      turns = 0
      Heddle.run(grace:) do
        fiber = Heddle.spin { swallow { sleep } }
        Heddle.snooze
        Heddle.terminate(fiber)
        10.times do
          sleep(0.001)
          turns += 1
        end
        turns = :starved unless fiber.alive?
        reported { Heddle.await(fiber) }
      end

      expect(turns).to eq(10)
    end
  end

  describe "in flight" do
    it "leaves an ensure alone that waits" do
      events = []
      terminated do
        sleep
      ensure
        sleep(0.001)
        events << :first
        sleep(0.001)
        events << :second
      end

      expect(events).to eq(%i[first second])
    end

    it "leaves an ensure alone that rescues something else, and waits there" do
      events = []
      terminated do
        sleep
      ensure
        begin
          raise KeyError
        rescue KeyError
          sleep(0.001)
          events << :inner
        end
        sleep(0.001)
        events << :outer
      end

      expect(events).to eq(%i[inner outer])
    end

    it "leaves a rescue of Exception alone that waits, and raises it again" do
      events = []
      terminated do
        sleep
      rescue Exception # rubocop:disable Lint/RescueException
        sleep(0.001)
        events << :rescued
        raise
      end

      expect(events).to eq([:rescued])
    end

    it "leaves the rescue of an error alone that was raised in its stead" do
      events = []
      terminated do
        begin
          sleep
        rescue Exception # rubocop:disable Lint/RescueException
          raise "instead"
        end
      rescue RuntimeError => e
        sleep(0.001)
        events << e.message
      end

      expect(events).to eq(["instead"])
    end

    it "lets ConditionVariable#wait lock its Mutex again, also within the rescue of something else" do
      owned = nil
      mutex = Mutex.new
      Heddle.run do
        waiter = Heddle.spin do
          raise IOError
        rescue IOError
          mutex.synchronize do
            ConditionVariable.new.wait(mutex)
          ensure
            owned = mutex.owned?
          end
        end
        Heddle.snooze
        mutex.synchronize do
          Heddle.terminate(waiter)
          3.times { sleep(0.001) }
        end
        Heddle.await(waiter)
      end

      expect(owned).to be(true)
    end

    it "is not raised a second time by a second Heddle.terminate" do
      ended = false
      Heddle.run do
        fiber = Heddle.spin do
          sleep
        ensure
          sleep(0.01)
          ended = true
        end
        Heddle.snooze
        3.times do
          Heddle.terminate(fiber)
          sleep(0.001)
        end
        Heddle.await(fiber)
      end

      expect(ended).to be(true)
    end

    it "leaves an ensure alone whose generator waits, when the thread is killed" do
      value = nil
      thread = Thread.new do
        Heddle.run do
          sleep
        ensure
          value = Enumerator.new { |yielder| yielder << sleep(0.001) }.next && :generated
        end
      end
      until_asleep(thread)
      thread.kill.join

      expect(value).to eq(:generated)
    end
  end

  Waits::KINDS.each do |kind, wait|
    # It ends by itself, perhaps at once.
    next if kind == "name resolution"

    context "in a fiber that waits in #{kind}" do
      # While a generator waits, nothing tells whether the fiber that has resumed it unwinds: there its grace counts.
      in_a_generator = kind.include?("generator") || kind.include?("resumed")
      it "is raised again when it has been swallowed there", unless: in_a_generator do
        swallowed = 0
        terminated do
          begin
            wait.call
          rescue Exception # rubocop:disable Lint/RescueException
            swallowed += 1
          end
          wait.call
        end

        expect(swallowed).to eq(1)
      end

      it "comes when the grace is over, if it is swallowed again and again" do
        line = reported { terminated(grace:) { swallow(&wait) } }

        expect(line).to include("#{__FILE__}:#{__LINE__ - 2} (suspended)> has not ended")
      end
    end
  end

  describe "that does not come" do
    it "does not keep Heddle.run from returning" do
      value = nil
      reported do
        value = Heddle.run(grace:) do
          Heddle.spin { swallow { sleep } }
          Heddle.snooze
          :returned
        end
      end

      expect(value).to eq(:returned)
    end

    it "does not keep the scheduler from being closed" do
      reported do
        with_scheduler(grace:) do |scheduler|
          Heddle.terminate(Fiber.schedule { swallow { sleep } })
          scheduler.close
          expect(Fiber.scheduler).to be_nil
        end
      end
    end

    it "does not keep a killed thread from ending" do
      thread = Thread.new { Heddle.run(grace:) { swallow { sleep } } }
      until_asleep(thread)
      reported { thread.kill.join }

      expect(thread).not_to be_alive
    end

    it "does not keep a killed thread from ending if the fiber begins then" do
      thread = Thread.new do
        Heddle.run(grace:) do
          sleep
        ensure
          Fiber.schedule { swallow { sleep } }
        end
      end
      until_asleep(thread)
      reported { thread.kill.join }

      expect(thread).not_to be_alive
    end

    it "is reported in one line, with the fiber's block and the place where it is" do
      line = nil
      text = reported do
        terminated(grace:) do
          line = __LINE__ + 1
          swallow { sleep }
        end
      end
      place = "#{__FILE__}:#{line}:in"

      expect(text.lines).to match([a_string_including("#<Fiber:0x", "#{__FILE__}:#{line - 2} (suspended)>",
                                                      "has not ended #{grace} s after it was told to", place)])
    end

    it "is awaited with the value nil" do
      values = nil
      reported do
        values = Heddle.run(grace:) do
          fiber = Heddle.spin { swallow { sleep } }
          Heddle.snooze
          Heddle.terminate(fiber)
          [Heddle.await(fiber), Heddle.terminate(fiber).equal?(fiber)]
        end
      end

      expect(values).to eq([[nil], true])
    end

    it "runs the fiber's ensure, and unlocks its Mutex" do
      events = []
      mutex = Mutex.new
      reported do
        terminated(grace:) do
          mutex.synchronize { swallow { sleep } }
        ensure
          events << :ensured
        end
      end

      expect([events, mutex.locked?]).to eq([[:ensured], false])
    end

    it "leaves a Queue to those that pop from it later" do
      queue = Queue.new
      reported { terminated(grace:) { swallow { queue.pop } } }
      GC.start
      queue << :first << :second

      expect([queue.pop, queue.pop]).to eq(%i[first second])
    end

    it "leaves a pipe to those that read from it later" do
      reader, writer = IO.pipe
      reported { terminated(grace:) { swallow { reader.read(5) } } }
      GC.start
      writer << "hello"

      expect(reader.read(5)).to eq("hello")
    ensure
      [reader, writer].each { |io| io&.close }
    end

    it "ends the fiber's children" do
      ended = false
      reported do
        terminated(grace:) do
          Heddle.spin do
            sleep
          ensure
            ended = true
          end
          swallow { sleep }
        end
      end

      expect(ended).to be(true)
    end

    {
      "in an ensure" => lambda {
        begin
          sleep
        ensure
          sleep
        end
      },
      "in a rescue of Exception" => lambda {
        begin
          sleep
        rescue Exception # rubocop:disable Lint/RescueException
          sleep
        end
      },
      "with next in an ensure, again and again" => lambda {
        loop do
          sleep
        ensure
          next
        end
      },
      "where it yields, again and again" => lambda {
        loop do
          sleep(0)
        rescue Exception # rubocop:disable Lint/RescueException
          nil
        end
      },
      "in a generator" => lambda {
        Enumerator.new do
          loop do
            sleep
          rescue Exception # rubocop:disable Lint/RescueException
            nil
          end
        end.next
      }
    }.each do |name, block|
      it "does not keep Heddle.run from returning if the fiber stays #{name}" do
        text = reported { terminated(grace:, &block) }

        expect(text.lines.size).to eq(1)
      end
    end

    it "does not come to a thousand fibers one after the other" do
      took = nil
      text = reported do
        took = seconds do
          Heddle.run(grace:) do
            1000.times { Heddle.spin { swallow { sleep } } }
            Heddle.snooze
          end
        end
      end

      expect([text.lines.size, took < grace + 10]).to eq([1000, true])
    end

    it "survives a $stderr that raises" do
      before = $stderr
      begin
        $stderr = Class.new { def write(*) = raise(IOError, "no stderr") }.new
        value = terminated(grace:) { swallow { sleep } }
      ensure
        $stderr = before
      end

      expect(value).to be_nil
    end

    it "does not wait for a $stderr that nobody reads" do
      reader, writer = IO.pipe
      before = $stderr
      writer.write_nonblock("x" * (1 << 20))
      ended = false
      begin
        $stderr = writer
        Heddle.run(grace:) do
          fiber = Heddle.spin { swallow { sleep } }
          Heddle.snooze
          Heddle.terminate(fiber)
          Heddle.await(fiber)
          ended = true
          # The line is still to be written.
          reader.read_nonblock(1 << 20)
        end
      ensure
        $stderr = before
      end

      expect(ended).to be(true)
    ensure
      [reader, writer].each { |io| io&.close }
    end

    it "leaves the process to end as usual", timeout: 60 do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        queue = Queue.new
        mutex = Mutex.new
        reader, writer = IO.pipe
        Heddle.run(grace: 0.05, preempt: :all) do
          waits = [-> { sleep }, -> { queue.pop }, -> { reader.read(1) }, -> { loop { Integer.sqrt(2) } },
                   -> { begin; sleep; ensure; mutex.lock; end }]
          waits.each do |wait|
            Heddle.spin do
              loop { begin; wait.call; rescue Exception; end }
            end
          end
          mutex.lock
          sleep 0.01
        end
        10.times { GC.start }
        GC.compact if GC.respond_to?(:compact)
        queue << 1
        at_exit { puts "ended" }
      RUBY

      expect([output, errors.lines.size, status.success?]).to eq(["ended\n", 5, true])
    end
  end

  describe "under way" do
    it "may take longer than the grace in Heddle.shield" do
      ended = false
      text = reported do
        terminated(grace: 0.01) do
          sleep
        ensure
          Heddle.shield { sleep(0.1) }
          ended = true
        end
      end

      expect([ended, text]).to eq([true, ""])
    end

    it "may take as long as it wants without a grace" do
      ended = false
      text = reported do
        terminated(grace: Float::INFINITY) do
          sleep
        ensure
          sleep(0.1)
          ended = true
        end
      end

      expect([ended, text]).to eq([true, ""])
    end

    it "may take longer for a parent whose children have their own grace" do
      text = reported do
        Heddle.run(grace: 0.05) do
          parent = Heddle.spin do
            Heddle.spin { swallow { sleep } }
            sleep
          end
          2.times { Heddle.snooze }
          Heddle.terminate(parent)
          Heddle.await(parent)
        end
      end

      expect(text.lines.size).to eq(1)
    end

    it "leaves nothing behind" do
      counts = nil
      Heddle.run do
        counts = [Fiber.scheduler.__send__(:counts)]
        fiber = Heddle.spin do
          sleep
        rescue Exception # rubocop:disable Lint/RescueException
          sleep(0.001)
        end
        Heddle.snooze
        Heddle.terminate(fiber)
        Heddle.await(fiber)
        counts << Fiber.scheduler.__send__(:counts)
      end

      expect(counts[1]).to eq(counts[0])
    end
  end

  describe "in a fiber that computes" do
    it "is raised again when it has been swallowed" do
      swallowed = 0
      Heddle.run(preempt: :all) do
        fiber = Heddle.spin do
          loop { Integer.sqrt(2) }
        rescue Exception # rubocop:disable Lint/RescueException
          swallowed += 1
          retry if swallowed < 3
          raise
        end
        sleep(0.001)
        Heddle.terminate(fiber)
        Heddle.await(fiber)
      end

      expect(swallowed).to eq(3)
    end

    it "leaves its ensure alone" do
      computed = false
      Heddle.run(preempt: :all) do
        fiber = Heddle.spin do
          loop { Integer.sqrt(2) }
        ensure
          ended = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 0.1
          Integer.sqrt(2) while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ended
          computed = true
        end
        sleep(0.001)
        Heddle.terminate(fiber)
        Heddle.await(fiber)
      end

      expect(computed).to be(true)
    end

    {
      "swallows it again and again" => -> { loop { Integer.sqrt(2) } },
      "masks it" => -> { Thread.handle_interrupt(Exception => :never) { loop { Integer.sqrt(2) } } }
    }.each do |name, compute|
      it "comes when the grace is over if the fiber #{name}, and others are preempted as before" do
        turns = 0
        text = reported do
          Heddle.run(grace:, preempt: :all) do
            fiber = Heddle.spin { swallow(&compute) }
            sleep(0.001)
            Heddle.terminate(fiber)
            Heddle.await(fiber)
            other = Heddle.spin { Integer.sqrt(2) while turns < 10 }
            10.times do
              sleep(0.001)
              turns += 1
            end
            Heddle.await(other)
          end
        end

        expect([text.lines.size, turns]).to eq([1, 10])
      end
    end

    it "does not keep a killed thread from ending" do
      thread = Thread.new do
        Heddle.run(grace:, preempt: :all) do
          Fiber.schedule { swallow { loop { Integer.sqrt(2) } } }
          sleep
        end
      end
      # It never sleeps.
      sleep(0.05)
      reported { thread.kill.join }

      expect(thread).not_to be_alive
    end
  end
end
