# frozen_string_literal: true

# A preempted fiber's exception is put on Ruby's list of pending interrupts, and Ruby raises it once the job is over.
RSpec.describe "An exception that is sent to a CPU-bound fiber" do
  # Compaction runs at each raise of the thread: of the exception that makes Ruby search the list again, too.
  tracing = <<~RUBY
    require "heddle"
    require "timeout"
    class Sent < Exception; end
    tracing = TracePoint.new(:raise) { GC.verify_compaction_references(toward: :empty, expand_heap: true) }
    before = GC.stat(:compact_count)
  RUBY

  it "is raised in the fiber after objects were moved in between, by Fiber#raise", gc: :compact do
    output, errors, = run_ruby(<<~RUBY)
      #{tracing}
      Heddle.run do
        fiber = Heddle::YieldingFiber.schedule do
          loop {}
        rescue Sent => e
          p [e.message, GC.stat(:compact_count) - before > 1]
        end
        tracing.enable { fiber.raise(Sent, "delivered") }
      end
    RUBY
    expect([output, errors]).to eq [%(["delivered", true]\n), ""]
  end

  it "is raised in the fiber after objects were moved in between, by a time limit", gc: :compact do
    output, errors, = run_ruby(<<~RUBY)
      #{tracing}
      Heddle.run do
        Heddle::YieldingFiber.schedule do
          tracing.enable
          Timeout.timeout(0.01, Sent, "delivered") { loop {} }
        rescue Sent => e
          p [e.message, GC.stat(:compact_count) - before > 1]
        end
      end
    RUBY
    expect([output, errors]).to eq [%(["delivered", true]\n), ""]
  end
end
