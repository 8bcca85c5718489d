# frozen_string_literal: true

require "socket"

# A file is always ready, so a fiber that writes to one waits for the lock only. The null device is never slow.
RSpec.describe "Fibers that write without a pause, under a lock," do
  let(:line) { "#{"x" * 99}\n" }

  let(:file) { null }

  after { file.close }

  # The caller closes the IO.
  def null = File.new(File::NULL, "w").tap { |device| device.sync = true }

  # Returns how often each fiber has written when the first one has written `most` times.
  def counts(fibers, most, &writes)
    Heddle.run { compete(fibers, most, &writes) }
  end

  def compete(fibers, most)
    counts = Array.new(fibers, 0)
    gate = Queue.new
    fibers.times do |number|
      Fiber.schedule do
        gate.pop
        yield(number) && counts[number] += 1 until counts.max >= most
      end
    end
    gate.close
    sleep(0) until counts.max >= most
    counts
  end

  def be_fair_shares
    satisfy("be shares of which the least is half of the greatest at least") { |shares| shares.min * 2 >= shares.max }
  end

  [2, 3, 4, 5, 30].each do |fibers|
    it "get equal shares of a Mutex: #{fibers} fibers" do
      lock = Mutex.new
      expect(counts(fibers, 400) { lock.synchronize { file.write(line) } }).to be_fair_shares
    end

    it "get equal shares of the lock that Ruby has for an IO: #{fibers} fibers" do
      expect(counts(fibers, 400) { file.write(line) }).to be_fair_shares
    end
  end

  it "all run if there are two locks" do
    locks = [Mutex.new, Mutex.new]
    files = [null, null]
    shares = counts(6, 1000) { |number| locks[number % 2].synchronize { files[number % 2].write(line) } }
    expect(shares.min * 50).to be > shares.max
  ensure
    files.each(&:close)
  end

  it "get equal shares if each locks an outer and an inner lock" do
    outer = Mutex.new
    inner = Mutex.new
    shares = counts(5, 400) { outer.synchronize { inner.synchronize { file.write(line) } } }
    expect(shares).to be_fair_shares
  end

  it "get equal shares of a socket" do
    lock = Mutex.new
    shares = UNIXSocket.pair do |reader, writer|
      Heddle.run do
        drain = Fiber.schedule { loop { reader.readpartial(65_536) } }
        compete(4, 200) { lock.synchronize { writer.write(line) } }.tap { drain.raise(StopIteration) }
      end
    end
    expect(shares).to be_fair_shares
  end

  describe "while they compute" do
    # Longer than a tick. A fiber that kept the lock until its preemption would run for ever if all others waited.
    def compute
      scheduler = Fiber.scheduler
      before = scheduler.stats[:run_queue][:preemptions_count]
      200_000.times { break if scheduler.stats[:run_queue][:preemptions_count] > before }
    end

    def write_and_compute
      file.write(line)
      compute || true
    end

    # Returns how often each of three fibers has held the lock when one has held it 20 times.
    def shares(late: nil, &held)
      lock = Mutex.new
      shares = Array.new(3, 0)
      Heddle.run do
        3.times do |number|
          YieldingFiber.schedule do
            compute if number == late
            shares[number] += 1 while shares.max < 20 && lock.synchronize(&held)
          end
        end
      end
      shares
    end

    it "get equal shares if they have written" do
      expect(shares { write_and_compute }).to be_fair_shares
    end

    it "get equal shares if they do nothing else" do
      expect(shares { compute || true }).to be_fair_shares
    end

    3.times do |late|
      it "get equal shares if number #{late} comes late, as it was preempted before" do
        expect(shares(late:) { write_and_compute }).to be_fair_shares
      end
    end
  end

  it "switch rarely" do
    blocks = 0
    scheduler = Class.new(Heddle::Scheduler) do
      define_method(:block) { |*arguments| (blocks += 1) && super(*arguments) }
    end
    lock = Mutex.new
    thread = Thread.new do
      Fiber.set_scheduler(scheduler.new)
      Fiber.schedule { compete(20, 400) { lock.synchronize { file.write(line) } } }
      Fiber.scheduler.run
    end
    thread.join
    expect(blocks).to be < 20 * 400 / 10
  end

  it "let other fibers run" do
    lock = Mutex.new
    runs = 0
    Heddle.run do
      over = false
      Fiber.schedule { (runs += 1) && sleep(0) until over }
      compete(3, 1000) { lock.synchronize { file.write(line) } }
      over = true
    end
    expect(runs).to be > 20
  end

  it "don't overtake fibers that wait for another lock" do
    lock = Mutex.new
    taken = []
    Heddle.run do
      held = Mutex.new
      held.lock
      3.times { |number| Fiber.schedule { held.synchronize { taken << number } } }
      compete(3, 200) { lock.synchronize { file.write(line) } }
      held.unlock
      sleep(0) until taken.size == 3
    end
    expect(taken).to eq [0, 1, 2]
  end
end
