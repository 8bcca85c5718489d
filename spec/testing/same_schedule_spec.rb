# frozen_string_literal: true

require "heddle/testing"
require "monitor"
require "timeout"
require "zlib"

# Each example compares with what was recorded once. So the versions of Ruby and the backends agree with each other.
RSpec.describe "A seed of Heddle::Testing" do
  # A fiber that computes, locks, waits for another, yields and uses an Enumerator.
  def weave(name, noted, lock, queue)
    noted << name
    lock.synchronize do
      noted << name
      queue << name
    end
    numbers = Enumerator.new do |values|
      values << 1
      values << 2
    end
    noted << "#{name}#{numbers.next}"
    Heddle.snooze
    noted << "#{name}#{numbers.next}"
    noted << queue.pop.upcase
    [3, 1, 2].sort_by { |number| -number }.each { |number| noted << number }
  end

  # @return [String] what three fibers note
  def notes(**)
    noted = []
    Heddle::Testing.explore(**) do
      noted.clear
      lock = Mutex.new
      queue = Queue.new
      Heddle.await_all(*%w[a b c].map { |name| Heddle.spin { weave(name, noted, lock, queue) } })
    end
    noted.join
  end

  {
    { seed: 1 } => "baacba1a2cc1Ab13c2b22BC1332121",
    { seed: 2 } => "aabbca1b1a2Ac3b22Bc11c2C321321",
    { seed: 42 } => "bbb1b2Baaa1ccc1321a2Ac2C321321",
    { seed: 99 } => "aabbb1ccc1b2Aa1321a2c2C321B321",
    { seed: 1, strategy: :pct } => "aaa1ccc1bbb1a2A321c2C321b2B321",
    { seed: 3, strategy: :pct, depth: 5 } => "bbaaa1ccc1b1a2B321c2A321b2C321",
    { schedule: "2.3>4,4.2>3" } => "bbb1aaa1ccc1b2B321a2A321c2C321"
  }.each do |options, expected|
    it "gives the recorded schedule with #{options}" do
      expect(notes(**options)).to eq(expected)
    end
  end

  # What each kind of wait and of fiber does to the order of three fibers.
  def wait_for_everything(name, noted, resources)
    lock, monitor, condition, queues, pipe = resources
    monitor.synchronize { monitor.synchronize { noted << "#{name}m" } }
    lock.synchronize { condition.wait(lock, 0.3) }
    condition.broadcast
    noted << "#{name}c"
    pass_on(name, noted, queues, pipe)
    noted << Timeout.timeout(0.5) { sleep(2) }.to_s
  rescue Timeout::Error
    noted << "#{name}t" << Queue.new.pop(timeout: 0.2).inspect
    noted << Heddle.run { Heddle.await(Heddle.spin { "#{name}n" }) }
    use_fibers(name, noted)
  end

  def pass_on(name, noted, queues, pipe)
    queues.each do |queue|
      queue.push(name)
      noted << queue.pop
    end
    pipe.last.write(name)
    noted << pipe.first.read(1)
  end

  def use_fibers(name, noted)
    fiber = Fiber.new do |value|
      noted << value
      Fiber.yield("#{name}y").tap { |given| noted << given }
    end
    noted << fiber.resume("#{name}1")
    noted << fiber.resume("#{name}2")
    noted << (name.to_sym.name + :b.id2name)
    noted << name.each_char.with_index.map { |character, index| "#{character}#{index}" }.join
  end

  # @return [Integer] a checksum of what the fibers note
  def checksum(**)
    noted = []
    Heddle::Testing.explore(clock: :virtual, **) do
      noted.clear
      pipe = IO.pipe
      queues = [SizedQueue.new(1), Heddle::Channel.new(3)]
      resources = [Mutex.new, Monitor.new, ConditionVariable.new, queues, pipe]
      Heddle.await_all(*%w[a b c].map { |name| Heddle.spin { wait_for_everything(name, noted, resources) } })
    ensure
      pipe&.each(&:close)
    end
    Zlib.crc32(noted.join)
  end

  {
    { seed: 1 } => 849_818_682,
    { seed: 5 } => 138_754_778,
    { seed: 42 } => 1_967_281_218,
    { seed: 7, strategy: :pct } => 4_028_264_733
  }.each do |options, expected|
    it "gives the recorded schedule of locks, limits, pipes and fibers within fibers with #{options}" do
      expect(checksum(**options)).to eq(expected)
    end
  end
end
