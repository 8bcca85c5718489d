# frozen_string_literal: true

require "monitor"
require "tmpdir"

# A forked child has one fiber. What its parent's other fibers held and waited for is free there, as Ruby has it for
# threads (trap 73).
RSpec.describe "A forked child", :regression, trap: 73 do
  # Holds the lock in a sibling fiber while the process forks. Two more siblings wait for the lock, and would get it
  # before the child's fibers.
  def child_of_sibling(hold, use, in_generator: false)
    Heddle.run(preempt: :all) do
      holding, done = Array.new(2) { Thread::Queue.new }
      work = -> { hold.call(-> { (holding << true) && done.pop }) }
      Fiber.schedule { in_generator ? Fiber.new(&work).resume : work.call }
      holding.pop
      2.times { Fiber.schedule { use.call } }
      in_child { without_old_stacks { [*Array.new(2) { Thread.new { use.call } }.map(&:value), use.call] } }
    ensure
      done.close
    end
  end

  # The stacks of fibers that are gone are used again.
  def without_old_stacks
    GC.start
    Array.new(10) { Fiber.new { Array.new(100) { |n| [n] }.sum { |n,| n } }.resume }
    yield
  ensure
    GC.start
  end

  mutex = Thread::Mutex.new
  monitor = Monitor.new
  {
    "a Mutex" => [->(wait) { mutex.synchronize(&wait) }, -> { mutex.synchronize { :free } }],
    "a Monitor" => [->(wait) { monitor.synchronize { monitor.synchronize(&wait) } },
                    -> { monitor.synchronize { :free } }]
  }.each do |name, (hold, use)|
    it "can use #{name} that a sibling of its fiber held when the process forked" do
      outcomes = [true, false].map { |in_generator| child_of_sibling(hold, use, in_generator:) }
      expect(outcomes).to eq [%i[free] * 3] * 2
    end
  end

  it "can require a file that a sibling of its fiber was loading when the process forked" do
    Dir.mktmpdir do |folder|
      file = File.join(folder, "loads.rb")
      File.write(file, "Fiber[:loading]&.call")
      hold = lambda do |wait|
        Fiber[:loading] = wait
        require file
      end
      use = lambda do
        require file
        $LOADED_FEATURES.include?(File.realpath(file)) ? :free : :not_loaded
      end
      expect(child_of_sibling(hold, use)).to eq %i[free] * 3
    end
  end

  it "keeps the locks of the fiber that forked, and of fibers that it can resume, but none of their waiters" do
    own = Thread::Mutex.new
    other = Thread::Mutex.new
    states = Heddle.run(preempt: :all) do
      generator = Fiber.new { [other.synchronize { Fiber.yield(:held) }, :ended].last }
      generator.resume
      own.synchronize do
        [own, other].each { |lock| Fiber.schedule { lock.synchronize { nil } } }
        in_child do
          GC.start
          seen = [own.owned?, other.locked?, other.try_lock, generator.resume, other.locked?]
          waiter = Thread.new { own.synchronize { :locked } }
          Thread.pass until waiter.stop?
          own.unlock
          (seen << waiter.value).tap { own.lock }
        end
      ensure
        generator.resume if generator.alive?
      end
    end
    expect(states).to eq [true, true, false, :ended, false, :locked]
  end

  it "keeps none of its parent's other fibers" do
    counts = Heddle.run do
      fibers = Array.new(500) { Fiber.schedule { sleep } }
      count = lambda do
        GC.start
        ObjectSpace.each_object(Fiber).count
      end
      before = count.call
      in_child { [before, fibers.clear && count.call] }
    ensure
      fibers.each { |fiber| fiber.kill if fiber.alive? }
    end
    # There may be fibers of other examples, too, and of these 500 some that a word on a stack looks like.
    expect(counts.first - counts.last).to be_between(250, 1_000_000)
  end

  it "wakes its own waiters of a Semaphore, not its parent's" do
    semaphore = Heddle::Semaphore.new(1).tap(&:acquire)
    waiting = Array.new(2) { Thread.new { semaphore.acquire } }
    waiting.each { |thread| Thread.pass until thread.stop? }
    expect(in_child { semaphore.release && semaphore.acquire ? :woken : :not_woken }).to eq :woken
  ensure
    waiting.each(&:kill).each(&:join)
  end
end
