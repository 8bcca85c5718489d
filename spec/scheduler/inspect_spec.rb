# frozen_string_literal: true

RSpec.describe Heddle::Scheduler do
  describe "#inspect" do
    it "names the class and the backend" do
      scheduler = described_class.new

      expect(scheduler.inspect).to match(/\A#<Heddle::Scheduler:0x\h+ .*backend=#{scheduler.backend}\b.*>\z/)
    end

    it "says that nothing waits when nothing does" do
      expect(described_class.new.inspect).to include("waiting=0")
    end

    it "counts the fibers that sleep" do
      text = Heddle.run do
        sleepers = Array.new(3) { Fiber.schedule { sleep } }
        Fiber.scheduler.inspect.tap { sleepers.each { |fiber| Fiber.scheduler.unblock(nil, fiber) } }
      end

      expect(text).to match(/waiting=\d+ .*sleep: 3/)
    end

    it "counts the fibers that are blocked" do
      queue = Queue.new
      text = Heddle.run do
        2.times { Fiber.schedule { queue.pop } }
        Fiber.scheduler.inspect.tap { queue.close }
      end

      expect(text).to match(/waiting=\d+ .*block: 2/)
    end

    it "counts fibers by what they wait for" do
      text = IO.pipe do |reader, writer|
        Heddle.run do
          Fiber.schedule { reader.wait_readable }
          sleeper = Fiber.schedule { sleep }
          text = Fiber.scheduler.inspect
          writer.write("x")
          Fiber.scheduler.unblock(nil, sleeper)
          text
        end
      end

      expect(text).to match(/io_wait: 1/).and match(/sleep: 1/)
    end

    it "counts the fibers that are runnable" do
      text = Heddle.run do
        done = false
        4.times { Fiber.schedule { sleep(0) until done } }
        # Until the root fiber waits for this one.
        pass_until { Fiber.scheduler.inspect.include?("waiting=1") }
        Fiber.scheduler.inspect.tap { done = true }
      end

      expect(text).to include("runnable=4")
    end

    it "leaves out fibers that have ended" do
      text = Heddle.run do
        fibers = Array.new(3) { Fiber.schedule { sleep(a_moment) } }
        pass_until { fibers.none?(&:alive?) }
        Fiber.scheduler.inspect
      end

      expect(text).not_to include("sleep")
    end

    it "can be called from another thread" do
      text = nil
      Heddle.run do
        scheduler = Fiber.scheduler
        text = Thread.new { scheduler.inspect }.value
      end

      expect(text).to match(/\A#<Heddle::Scheduler.*waiting=/)
    end

    it "can be called after the scheduler was closed" do
      scheduler = nil
      Heddle.run { scheduler = Fiber.scheduler }

      expect(scheduler.inspect).to match(/\A#<Heddle::Scheduler.*>\z/)
    end
  end
end
