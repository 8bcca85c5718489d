# frozen_string_literal: true

RSpec.describe "A thread with CPU-bound fibers" do
  Selection.tickers.product([1, 3]) do |ticker, count|
    # The kill sometimes comes just as a fiber is switched to. One in thirty of these once did not end its thread.
    it "is ended by each of fifty kills: #{count} fibers, with the ticker #{ticker}" do
      threads = Array.new(50) do
        begun = Queue.new
        thread = Thread.new do
          Heddle.run(ticker:, quantum: 0.001) do
            count.times { YieldingFiber.schedule { begun.push(true) && loop { Integer.sqrt(2) } } }
            sleep
          end
        end
        count.times { begun.pop }
        thread.kill.join
      end
      expect(threads).to all(have_attributes(status: false))
    end
  end
end
