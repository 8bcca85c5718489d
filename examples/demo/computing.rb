# frozen_string_literal: true

require_relative "../preemption"

# The programs of examples/preemption.rb, in short.
class Computing
  # Approximate seconds that fib takes.
  SLEPT_BESIDE = 1.6
  SERVED_BESIDE = 0.5

  def initialize(board)
    @board = board
  end

  def run
    sleepers
    server
  end

  private

  def sleepers
    number = Preemption.argument_for(SLEPT_BESIDE)
    @board.title("Two fibers that sleep 1 s, beside one that computes fib(#{number})")
    @board.compare("preemption", "without", "with")
    both = %i[none yielding].map { |preempt| Preemption.sleepers(number, preempt) }
    ["one slept for", "the other slept for", "fib took"].zip(*both) do |name, *each|
      @board.compare(name, *each.map { |took| format("%.2f s", took) })
    end
  end

  def server
    number = Preemption.argument_for(SERVED_BESIDE)
    @board.title("A web server that gets requests for /hello while it computes /fib")
    @board.compare("preemption", "without", "with")
    hellos, took = %i[none yielding].map { |preempt| Preemption.server(number, preempt) }.transpose
    @board.compare("answers to /hello", *hellos.map { |each| each.size.to_s })
    @board.compare("the slowest after", *hellos.map { |each| milliseconds(each.max) })
    @board.compare("/fib after", *took.map { |each| milliseconds(each) })
  end

  def milliseconds(seconds)
    format("%.2f ms", seconds * 1000)
  end
end
