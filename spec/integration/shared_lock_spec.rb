# frozen_string_literal: true

require "socket"

# A file is always ready, so whoever writes to one never has to wait but for the lock. The null device is never slow.
RSpec.describe "Fibers that write all the time, under a lock" do
  let(:line) { "#{"x" * 99}\n" }

  let(:file) { null }

  after { file.close }

  # Closed by who has opened it.
  def null = File.new(File::NULL, "w").tap { |device| device.sync = true }

  # How often each could do it until the first has done it `most` times.
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

  def everybody_has_a_fair_share
    satisfy("be shares of which the least is half of the greatest at least") { |shares| shares.min * 2 >= shares.max }
  end

  [2, 3, 4, 5, 30].each do |fibers|
    it "get equal shares of a Mutex: #{fibers} fibers" do
      lock = Mutex.new
      expect(counts(fibers, 400) { lock.synchronize { file.write(line) } }).to everybody_has_a_fair_share
    end

    it "get equal shares of the lock that Ruby has for an IO: #{fibers} fibers" do
      expect(counts(fibers, 400) { file.write(line) }).to everybody_has_a_fair_share
    end
  end

  it "all have their turns if there are two locks" do
    locks = [Mutex.new, Mutex.new]
    files = [null, null]
    shares = counts(6, 1000) { |number| locks[number % 2].synchronize { files[number % 2].write(line) } }
    expect(shares.min * 50).to be > shares.max
  ensure
    files.each(&:close)
  end

  it "get equal shares if each takes another's lock within its own" do
    outer = Mutex.new
    inner = Mutex.new
    shares = counts(5, 400) { outer.synchronize { inner.synchronize { file.write(line) } } }
    expect(shares).to everybody_has_a_fair_share
  end

  it "get equal shares of a socket" do
    lock = Mutex.new
    shares = UNIXSocket.pair do |reader, writer|
      Heddle.run do
        drain = Fiber.schedule { loop { reader.readpartial(65_536) } }
        compete(4, 200) { lock.synchronize { writer.write(line) } }.tap { drain.raise(StopIteration) }
      end
    end
    expect(shares).to everybody_has_a_fair_share
  end

  describe "while they compute" do
    # More than a tick's work. Who went on until it is preempted would do so for ever if all others waited for its lock.
    def compute
      scheduler = Fiber.scheduler
      before = scheduler.preemptions
      200_000.times { break if scheduler.preemptions > before }
    end

    def write_and_compute
      file.write(line)
      compute || true
    end

    # How often each of three fibers held the lock until one had held it 20 times.
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
      expect(shares { write_and_compute }).to everybody_has_a_fair_share
    end

    it "get equal shares if they do nothing else" do
      expect(shares { compute || true }).to everybody_has_a_fair_share
    end

    3.times do |late|
      it "get equal shares if number #{late} comes late, as it was preempted before" do
        expect(shares(late:) { write_and_compute }).to everybody_has_a_fair_share
      end
    end
  end

  it "pass it on seldom" do
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

  it "let others have their turns" do
    lock = Mutex.new
    turns = 0
    Heddle.run do
      over = false
      Fiber.schedule { (turns += 1) && sleep(0) until over }
      compete(3, 1000) { lock.synchronize { file.write(line) } }
      over = true
    end
    expect(turns).to be > 20
  end

  it "don't get ahead of those that wait for another lock" do
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
