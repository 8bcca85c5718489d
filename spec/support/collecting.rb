# frozen_string_literal: true

# Runs the garbage collector at inconvenient times. An extension that forgets to mark an object works until then.
#
#   it "…", gc: :compact    runs with GC.auto_compact, and verifies every reference at its end
#   it "…", gc: :plain      ignores HEDDLE_GC
#
# HEDDLE_GC=stress and HEDDLE_GC=compact collect or compact every few milliseconds in all other examples, from another
# thread. They happen where the thread under test has released the GVL. GC.stress everywhere would take hours.
module Collecting
  INTERVAL = 0.005
  IN_BACKGROUND = { "stress" => :start, "compact" => :compact }.freeze

  module_function

  def compacts?
    GC.respond_to?(:compact) && GC.respond_to?(:auto_compact=)
  end

  def during(mode, &)
    case mode
    when :compact then with_compaction(&)
    when :plain then yield
    when nil then in_background(&)
    else raise ArgumentError, "gc: #{mode.inspect} is neither :compact nor :plain"
    end
  end

  def with_compaction
    return yield unless compacts?

    before = GC.auto_compact
    begin
      GC.auto_compact = true
      yield
      GC.verify_compaction_references(toward: :empty, expand_heap: true)
    ensure
      GC.auto_compact = before
    end
  end

  def in_background
    return yield unless (wanted = ENV.fetch("HEDDLE_GC", nil))

    collection = IN_BACKGROUND.fetch(wanted)
    stop = Queue.new
    collector = Thread.new { GC.public_send(collection) until stop.pop(timeout: INTERVAL) }
    begin
      yield
    ensure
      stop.push(true)
      collector.join
    end
  end
end
