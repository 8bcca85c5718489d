# frozen_string_literal: true

RSpec.describe "Queues in fibers" do
  describe Queue do
    it "makes a fiber wait for an item that another fiber pushes" do
      popped = []
      Heddle.run do
        queue = Queue.new
        Fiber.schedule { popped << queue.pop }
        popped << :before
        queue.push(:pushed)
      end
      expect(popped).to eq %i[before pushed]
    end

    it "serves waiting fibers in the order of their requests" do
      served = []
      Heddle.run do
        queue = Queue.new
        3.times { |number| Fiber.schedule { served << [number, queue.pop] } }
        %i[a b c].each { |item| queue.push(item) }
      end
      expect(served).to eq [[0, :a], [1, :b], [2, :c]]
    end

    it "returns nil when no item comes within the timeout, and not before" do
      item = :nothing_yet
      took = seconds { item = Heddle.run { Queue.new.pop(timeout: 0.02) } }
      expect([item, took]).to match [nil, be >= 0.02]
    end

    it "returns an item that comes within the timeout" do
      item = Heddle.run do
        queue = Queue.new
        Fiber.schedule do
          sleep(0)
          queue.push(:in_time)
        end
        queue.pop(timeout: 60)
      end
      expect(item).to eq :in_time
    end

    it "doesn't wait with a timeout of 0" do
      expect(Heddle.run { Queue.new.pop(timeout: 0) }).to be_nil
    end

    it "accepts a timeout that is a Rational" do
      expect(Heddle.run { Queue.new.pop(timeout: 0.005r) }).to be_nil
    end

    it "loses no item to a fiber whose timeout has expired" do
      left = Heddle.run do
        queue = Queue.new
        queue.pop(timeout: 0.005)
        queue.push(:kept)
        queue.pop(timeout: 60)
      end
      expect(left).to eq :kept
    end

    it "wakes every waiting fiber when it is closed" do
      results = []
      Heddle.run do
        queue = Queue.new
        3.times { Fiber.schedule { results << queue.pop } }
        queue.close
      end
      expect(results).to eq [nil, nil, nil]
    end

    it "returns its remaining items after it was closed" do
      results = Heddle.run do
        queue = Queue.new([1, 2])
        queue.close
        Array.new(3) { queue.pop }
      end
      expect(results).to eq [1, 2, nil]
    end

    it "counts the fibers that wait" do
      waiting = Heddle.run do
        queue = Queue.new
        2.times { Fiber.schedule { queue.pop } }
        queue.num_waiting.tap { queue.close }
      end
      expect(waiting).to eq 2
    end

    it "passes items from a thread to a fiber" do
      items = Heddle.run do
        queue = Queue.new
        producer = Thread.new { 100.times { |number| queue.push(number) } }
        Array.new(100) { queue.pop }.tap { producer.join }
      end
      expect(items).to eq [*0...100]
    end

    it "passes items from a fiber to a thread" do
      queue = Queue.new
      consumer = Thread.new { Array.new(100) { queue.pop } }
      Heddle.run do
        100.times do |number|
          queue.push(number)
          sleep(0) if (number % 10).zero?
        end
      end
      expect(consumer.value).to eq [*0...100]
    end

    it "passes requests and responses between the fibers of two threads" do
      questions = Queue.new
      answers = Queue.new
      answerer = scheduled_thread do
        Fiber.schedule do
          while (question = questions.pop)
            answers.push(question * 2)
          end
        end
      end
      received = Heddle.run do
        Array.new(50) do |number|
          questions.push(number)
          answers.pop
        end.tap { questions.close }
      end
      answerer.join
      expect(received).to eq Array.new(50) { |number| number * 2 }
    end
  end

  describe SizedQueue do
    it "makes a fiber wait for room" do
      events = []
      Heddle.run do
        queue = SizedQueue.new(1)
        Fiber.schedule do
          2.times { |number| events << [:pushed, number] if queue.push(number) }
        end
        2.times { events << [:popped, queue.pop] }
      end
      expect(events).to eq [[:pushed, 0], [:popped, 0], [:pushed, 1], [:popped, 1]]
    end

    it "returns nil when there is no room within the timeout" do
      pushed = Heddle.run do
        queue = SizedQueue.new(1)
        queue.push(:first)
        [queue.push(:second, timeout: 0.01), queue.size]
      end
      expect(pushed).to eq [nil, 1]
    end

    it "raises ClosedQueueError in fibers that wait for room when it is closed" do
      errors = []
      Heddle.run do
        queue = SizedQueue.new(1)
        queue.push(:first)
        2.times do
          Fiber.schedule do
            queue.push(:more)
          rescue ClosedQueueError => e
            errors << e.class
          end
        end
        queue.close
      end
      expect(errors).to eq [ClosedQueueError, ClosedQueueError]
    end

    it "wakes every fiber that waits for an item when it is closed" do
      results = []
      Heddle.run do
        queue = SizedQueue.new(1)
        2.times { Fiber.schedule { results << queue.pop } }
        queue.close
      end
      expect(results).to eq [nil, nil]
    end

    it "passes each item from many producers to one of many consumers" do
      consumed = []
      Heddle.run do
        queue = SizedQueue.new(3)
        consumers = Array.new(4) do
          Fiber.schedule do
            while (item = queue.pop)
              consumed << item
            end
          end
        end
        producing = Array.new(4) do |producer|
          Thread::Queue.new.tap do |done|
            Fiber.schedule do
              250.times { |number| queue.push([producer, number]) }
              done.push(true)
            end
          end
        end
        producing.each(&:pop)
        queue.close
        pass_until { consumers.none?(&:alive?) }
      end
      expect(consumed).to match_array [*0...4].product([*0...250])
    end

    it "slows down a thread to the speed of the fiber that consumes" do
      sizes = Heddle.run do
        queue = SizedQueue.new(2)
        producer = Thread.new do
          50.times { |number| queue.push(number) }
          queue.close
        end
        seen = []
        while queue.pop
          seen << queue.size
          sleep(0)
        end
        producer.join
        seen
      end
      expect(sizes).to have_attributes(size: 50, max: be <= 2)
    end
  end
end
