# frozen_string_literal: true

# Fibers that are stopped while they wait.
module Terminating
  # Spins a fiber that runs the block, terminates it at its first wait, and returns what Heddle.await gives for it. The
  # options are those of Heddle.run. `virtual` says that the clock jumps when all fibers wait.
  def run_and_terminate(virtual: false, **options, &block)
    run = virtual ? method(:virtually) : Heddle.method(:run)
    run.call(**options) do
      fiber = Heddle.spin(&block)
      Heddle.snooze
      Heddle.stop(fiber)
      Heddle.await(fiber)
    end
  end
end
