# frozen_string_literal: true

# A hook treats some methods of Ruby in another way than most, and must see them behind a program's own hook.
RSpec.describe "A subclass of Heddle::Scheduler whose hooks call super" do
  subject(:scheduler) do
    Class.new(Heddle::Scheduler) do
      %i[io_read io_write kernel_sleep].each do |hook|
        define_method(hook) { |*arguments| tap { calls << hook } && super(*arguments) }
      end

      def calls = @calls ||= []
    end.new
  end

  def scheduled
    value = nil
    Thread.new do
      Fiber.set_scheduler(scheduler)
      Fiber.schedule { value = yield }
    end.join
    value
  end

  it "waits in IO#sysread", :regression do
    read = IO.pipe do |reader, writer|
      scheduled do
        Fiber.schedule { sleep(0) && writer.write("late") }
        reader.sysread(10)
      end
    end
    expect([read, scheduler.calls.uniq]).to match ["late", include(:io_read)]
  end

  it "ends no sleep by an earlier wake-up", :regression do
    woken = scheduled do
      scheduler.unblock(:other, Fiber.current)
      started = Clock.now
      sleep(0.02) # at least
      [Clock.now - started >= 0.02, scheduler.calls]
    end
    expect(woken).to eq [true, %i[kernel_sleep]]
  end

  # Ruby walks over a list whose elements are on the waiters' stacks.
  describe "and whose `unblock` does so" do
    let(:own) { Mutex.new }
    let(:ran) { [] }

    # A fiber that has used up its budget with writes gives a lock to the fiber that waits for it.
    def use_up_budget
      IO.pipe { |_reader, writer| 40.times { writer.syswrite("x") } }
    end

    # Calls the block instead of `super`, and gives it that.
    def override(&block)
      scheduler.singleton_class.define_method(:unblock) { |*arguments| block.call(-> { super(*arguments) }) }
    end

    def wait_for_own
      own.lock
      Fiber.schedule { own.synchronize { ran << :own } }
    end

    {
      "directly" => :call.to_proc,
      "in a method written in C" => ->(rest) { [0].each { rest.call } }
    }.each do |way, overridden|
      it "#{way}, lets no waiter run within ConditionVariable#broadcast", :regression do
        override(&overridden)
        within = scheduled do
          lock = Mutex.new
          condition = ConditionVariable.new
          3.times { |number| Fiber.schedule { lock.synchronize { condition.wait(lock) } && (ran << number) } }
          use_up_budget
          condition.broadcast
          ran.dup
        end
        expect([within, ran]).to eq [[], [0, 1, 2]]
      end
    end

    it "lets no fiber run within Queue#close, if it releases a lock first", :regression do
      override do |rest|
        own.unlock if own.owned?
        rest.call
      end
      within = scheduled do
        queue = Queue.new
        3.times { |number| Fiber.schedule { queue.pop || (ran << number) } }
        wait_for_own
        use_up_budget
        queue.close
        ran.dup
      end
      expect([within, ran.sort_by(&:to_s)]).to eq [[], [0, 1, 2, :own]]
    end
  end

  it "doesn't wait in IO#read_nonblock" do
    answer = IO.pipe { |reader, _writer| scheduled { reader.read_nonblock(1, exception: false) } }
    expect([answer, scheduler.calls]).to eq [:wait_readable, %i[io_read]]
  end
end
