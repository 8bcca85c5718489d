# frozen_string_literal: true

# Fibers that sleep, compute, and do I/O beside a test.
class CompanionFibers
  END_OF_TEST = "!"

  def initialize
    # Opened before the first test: Test::Unit reports descriptors that a test leaves open.
    @reader, @writer = IO.pipe
  end

  # Runs the block beside the fibers.
  def around
    over = false
    Fiber.schedule { pause(0.001) until over }
    Fiber.schedule { compute_and_sleep until over }
    Fiber.schedule { nil until @reader.readpartial(64).include?(END_OF_TEST) }
    Fiber.schedule do
      talk until over
      @writer.write(END_OF_TEST)
    end
    yield
  ensure
    over = true
  end

  private

  # Computes for longer than a quantum, and leaves most of the CPU to the test.
  def compute_and_sleep
    ending = now + 0.0015
    100.times { |n| n * n } while now < ending
    pause(0.005)
  end

  def talk
    @writer.write(".")
    pause(0.0005)
  end

  # Under GC.stress each allocation costs a whole collection, and these fibers would leave no time for the test.
  def pause(seconds) = sleep(GC.stress ? 1 : seconds)

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end
