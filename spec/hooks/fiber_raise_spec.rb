# frozen_string_literal: true

RSpec.describe "Fiber#raise and Fiber#kill" do
  let(:cancelled) { Class.new(StandardError) }

  before { cancelled }

  describe "Fiber#kill" do
    it "lets an ensure clause wait" do
      events = []
      Heddle.run do
        fiber = Fiber.schedule do
          sleep
        ensure
          sleep(a_moment)
          events << :waited
        end
        fiber.kill
        events << :killed
      end
      expect(events).to eq %i[killed waited]
    end

    it "does nothing if the fiber has been killed before" do
      events = []
      Heddle.run do
        fiber = Fiber.schedule do
          sleep
        ensure
          sleep(a_moment)
          events << :cleaned_up
        end
        2.times { fiber.kill }
      end
      expect(events).to eq [:cleaned_up]
    end

    it "ends a fiber that is shielded" do
      ended = Heddle.run do
        fiber = Fiber.schedule { Heddle.shield { sleep } }
        fiber.kill
        !fiber.alive?
      end
      expect(ended).to be true
    end

    it "makes Thread#status tell a fiber's ensure clause that kills itself" do
      told = nil
      status = Heddle.run do
        Fiber.schedule do
          Fiber.current.kill
        ensure
          told = Thread.current.status
        end
        Thread.current.status
      end
      expect([told, status]).to eq %w[aborting run]
    end
  end

  Waits::KINDS.each do |kind, wait|
    context "when the fiber waits in #{kind}" do
      it "end the wait by the error, and the raising fiber continues" do
        outcome = Heddle.run do
          outcomes = Queue.new
          fiber = Fiber.schedule do
            outcomes.push([:not_raised, wait.call])
          rescue cancelled => e
            outcomes.push(e.message)
          end
          fiber.raise(cancelled, "enough")
          outcomes.pop
        end
        expect(outcome).to eq "enough"
      end

      it "end the fiber after its ensure, and the killing fiber continues" do
        outcome = Heddle.run do
          outcomes = Queue.new
          fiber = Fiber.schedule do
            wait.call
            outcomes.push(:not_killed)
          ensure
            outcomes.push(:ensured)
          end
          fiber.kill
          outcomes.pop
        end
        expect(outcome).to eq :ensured
      end
    end
  end

  it "return to the raising fiber also when the fiber waits again in its rescue" do
    order = []
    virtually do
      fiber = Fiber.schedule do
        sleep
      rescue cancelled
        sleep(1)
        order << :rescued
      end
      fiber.raise(cancelled)
      order << :raiser
    end
    expect(order).to eq %i[raiser rescued]
  end

  # After Fiber#kill an ensure can't wait: Ruby kills the fiber again at each switch to it.
  it "let an ensure wait for other fibers" do
    order = []
    virtually do
      queue = Queue.new
      fiber = Fiber.schedule do
        begin
          sleep
        ensure
          order << queue.pop
          sleep(1)
        end
      rescue cancelled
        order << :done
      end
      fiber.raise(cancelled)
      queue.push(:popped)
    end
    expect(order).to eq %i[popped done]
  end

  it "return to each raising fiber of a chain" do
    order = []
    Heddle.run do
      last = Fiber.schedule do
        sleep
      rescue cancelled
        order << :last
      end
      middle = Fiber.schedule do
        sleep
      rescue cancelled
        last.raise(cancelled)
        order << :middle
      end
      middle.raise(cancelled)
      order << :first
    end
    expect(order).to contain_exactly(:last, :middle, :first)
  end

  it "return to the root fiber" do
    order = with_scheduler do
      events = []
      fiber = Fiber.schedule do
        sleep
      rescue cancelled
        events << :rescued
      end
      fiber.raise(cancelled)
      events << :root
    end
    expect(order).to eq %i[rescued root]
  end

  it "may interrupt many waiting fibers, one after the other" do
    count = 0
    Heddle.run do
      fibers = Array.new(100) do
        Fiber.schedule do
          sleep
        rescue cancelled
          count += 1
        end
      end
      fibers.each { |fiber| fiber.raise(cancelled) }
    end
    expect(count).to eq 100
  end

  it "don't make a later wait end early" do
    took = nil
    Heddle.run do
      queue = Queue.new
      fiber = Fiber.schedule do
        queue.pop
      rescue cancelled
        took = seconds { sleep(0.02) } # at least
      end
      queue.push(:item)
      fiber.raise(cancelled)
    end
    expect(took).to be >= 0.02
  end

  it "take no item out of a queue for a fiber that no longer waits" do
    item = Heddle.run do
      queue = Queue.new
      fiber = Fiber.schedule do
        queue.pop
      rescue cancelled
        nil
      end
      fiber.raise(cancelled)
      queue.push(:kept)
      queue.pop
    end
    expect(item).to eq :kept
  end

  it "take no bytes for a fiber that no longer reads" do
    bytes = IO.pipe do |reader, writer|
      Heddle.run do
        fiber = Fiber.schedule do
          reader.readpartial(10)
        rescue cancelled
          nil
        end
        fiber.raise(cancelled)
        writer.write("kept")
        reader.readpartial(10)
      end
    end
    expect(bytes).to eq "kept"
  end

  it "lock the mutex again in the ensure of an interrupted ConditionVariable#wait" do
    owned = nil
    Heddle.run do
      mutex = Mutex.new
      fiber = Fiber.schedule do
        mutex.synchronize do
          ConditionVariable.new.wait(mutex)
        ensure
          owned = mutex.owned?
        end
      rescue cancelled
        nil
      end
      mutex.synchronize do
        fiber.raise(cancelled)
        sleep(0)
      end
    end
    expect(owned).to be true
  end

  it "raise through a generator into the fiber that resumed it" do
    events = []
    Heddle.run do
      numbers = Enumerator.new do |yielder|
        yielder << sleep
      ensure
        events << :generator
      end
      fiber = Fiber.schedule do
        numbers.next
      rescue cancelled
        events << :asker
      end
      fiber.raise(cancelled)
      events << :raiser
    end
    expect(events).to eq %i[generator asker raiser]
  end

  # Raises in a waiting fiber from within a generator. Returns what happened, in order.
  def raised_from_generator
    log = []
    fiber = Fiber.schedule do
      sleep
    rescue cancelled
      log << :rescued
    end
    raising = Enumerator.new do |yielder|
      fiber.raise(cancelled)
      log << :generator
      yielder << :value
    end
    log << raising.next
  end

  it "may be called from within a generator" do
    expect(Heddle.run { raised_from_generator }).to eq %i[rescued generator value]
  end

  it "may be called from within a generator that the root fiber has resumed" do
    expect(with_scheduler { raised_from_generator }).to eq %i[rescued generator value]
  end

  it "raise as usual in the fiber itself" do
    message = Heddle.run do
      Fiber.current.raise(cancelled, "itself")
    rescue cancelled => e
      e.message
    end
    expect(message).to eq "itself"
  end

  it "end the fiber itself, and run its ensure" do
    events = []
    Heddle.run do
      Fiber.schedule do
        sleep(0)
        Fiber.current.kill
        events << :not_killed
      ensure
        events << :ensured
      end
    end
    expect(events).to eq [:ensured]
  end

  it "raise FiberError for a fiber that has ended" do
    expect { Heddle.run { Fiber.schedule { :done }.raise(cancelled) } }.to raise_error(FiberError, /dead|terminated/)
  end

  it "report an error that the interrupted fiber doesn't rescue, and the raising fiber continues" do
    went_on = false
    expect do
      Heddle.run do
        fiber = Fiber.schedule { sleep }
        fiber.raise(RuntimeError, "nobody takes it")
        went_on = true
      end
    end.to output(/nobody takes it/).to_stderr
    expect(went_on).to be true
  end
end
