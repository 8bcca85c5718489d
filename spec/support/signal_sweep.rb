# frozen_string_literal: true

# Sends a signal at one point after the other: the end of each method that is called while something is watched. For
# programs in a Ruby of their own, which require this file: it needs nothing but Ruby.
class SignalSweep
  PATH = __FILE__

  # Runs the block for each point; it watches what it tests. Prints the points at which the Interrupt was lost, and
  # whether there were at least so many points.
  #
  # @yieldparam sweep [SignalSweep]
  def self.print_lost(least)
    lost = []
    (1..).each do |point|
      sweep = new(point)
      raised = sweep.interrupted? { yield sweep }
      break p(lost, point > least) unless sweep.sent

      lost << sweep.sent unless raised
    end
  end

  # @return [String, nil] the method at whose end the signal was sent
  attr_reader :sent

  def initialize(point)
    @point = point
  end

  # @return [Boolean] whether the Interrupt was raised
  def interrupted?
    count = 0
    trace = TracePoint.new(:return, :c_return, :b_return) do |event|
      next unless @watching && !@sent && (count += 1) == @point

      @sent = "#{event.defined_class}##{event.method_id}"
      Process.kill(:INT, Process.pid)
    end
    trace.enable(target_thread: Thread.current)
    yield
    false
  rescue Interrupt
    true
  ensure
    trace.disable
  end

  # Methods that the block calls are points.
  def watch
    @watching = true
    yield
    @watching = false
  end
end
