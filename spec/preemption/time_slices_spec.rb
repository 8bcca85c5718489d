# frozen_string_literal: true

# A Ruby that ends time slices itself calls `yield` at points of its own. No such Ruby exists yet, so a TracePoint calls
# it at each line of the program.
RSpec.describe "A Ruby that ends time slices itself" do
  let(:preamble) { <<~RUBY }
    class Fiber
      attr_accessor :quantum
    end
    require "heddle"

    SLICES = TracePoint.new(:line) { Fiber.current_scheduler&.yield }

    # Whether the fiber reads and writes the sum without another one's interference.
    def count(total)
      total.times do
        before = $sum
        $lines += 1
        $sum = before + 1
      end
    end
    $sum = $lines = 0
  RUBY

  it "doesn't preempt plain fibers" do
    expect(printed(<<~RUBY)).to eq "[3000, 0]\n"
      Heddle.run do
        SLICES.enable do
          fibers = Array.new(3) { Fiber.schedule { count(1000) } }
          sleep(0.001) while fibers.any?(&:alive?)
        end
        p [$sum, Fiber.scheduler.stats[:run_queue][:preemptions_count]]
      end
    RUBY
  end

  it "doesn't preempt in Heddle.without_preemption" do
    expect(printed(<<~RUBY)).to eq "3000\n"
      Heddle.run do
        SLICES.enable do
          fibers = Array.new(3) { YieldingFiber.schedule { Heddle.without_preemption { count(1000) } } }
          sleep(0.001) while fibers.any?(&:alive?)
        end
        p $sum
      end
    RUBY
  end

  it "lets Heddle preempt yielding fibers" do
    expect(printed(<<~RUBY)).to eq "[true, true]\n"
      Heddle.run do
        over = false
        fiber = YieldingFiber.schedule { nil until over }
        SLICES.enable do
          over = true
          sleep(0) while fiber.alive?
        end
        p [over, Fiber.scheduler.stats[:run_queue][:preemptions_count].positive?]
      end
    RUBY
  end

  it "doesn't disturb fibers that wait" do
    expect(printed(<<~RUBY)).to eq "[[1, 2, 3], \"text\"]\n"
      Heddle.run do
        SLICES.enable do
          queue = Queue.new
          Fiber.schedule { 3.times { |number| sleep(a_moment) && queue.push(number + 1) } }
          text = IO.pipe do |reader, writer|
            Fiber.schedule { writer.write("text") && writer.close }
            reader.read
          end
          p [Array.new(3) { queue.pop }, text]
        end
      end
    RUBY
  end
end
