# frozen_string_literal: true

# Fibers that are told to end while they wait.
module Terminating
  # Spins a fiber that runs the block, terminates it at its first wait, and returns what Heddle.await gives for it. The
  # options are those of Heddle.run.
  def run_and_terminate(**options, &block)
    Heddle.run(**options) do
      fiber = Heddle.spin(&block)
      Heddle.snooze
      Heddle.terminate(fiber)
      Heddle.await(fiber)
    end
  end
end
