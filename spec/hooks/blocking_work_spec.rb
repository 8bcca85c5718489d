# frozen_string_literal: true

# The helper of the hook blocking_operation_wait: runs an operation in a thread.
RSpec.describe "Heddle::BlockingWork" do
  let(:helper) { Heddle.const_get(:BlockingWork) }

  it "returns the value of an operation that runs in a thread of its own" do
    expect(helper.in_thread(-> { Thread.current }, 1)).not_to equal(Thread.current)
  end

  it "returns nil, without running the operation, if as many threads are busy as may be" do
    expect(helper.in_thread(-> { [helper.in_thread(-> { :inner }, 1)] }, 1)).to eq([nil])
  end

  it "counts no thread of its parent as busy in a forked child", :regression do
    expect(helper.in_thread(-> { in_child { helper.in_thread(-> { :child }, 1) } }, 1)).to eq(:child)
  end

  it "counts its own thread as busy after a fork" do
    values = helper.in_thread(-> { [in_child { helper.in_thread(-> { 1 }, 1) }, helper.in_thread(-> { 2 }, 1)] }, 1)

    expect(values).to eq([1, nil])
  end

  it "ends the operation before a fiber ends that is killed meanwhile", :regression do
    order = []
    Heddle.run do
      started = Queue.new
      operation = lambda do
        started << true
        sleep
      ensure
        order << :operation
      end
      fiber = Fiber.schedule do
        helper.in_thread(operation, 1)
      ensure
        order << :fiber
      end
      started.pop
      fiber.kill
    end

    expect(order).to eq(%i[operation fiber])
  end

  it "counts no operation as busy that has ended by an error" do
    error_of { helper.in_thread(-> { raise KeyError }, 1) }

    expect(helper.in_thread(-> { :next }, 1)).to eq(:next)
  end
end
