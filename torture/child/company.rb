# frozen_string_literal: true

# Fibers that sleep, compute, and do I/O beside a test.
class Company
  END_OF_TEST = "!"

  def initialize
    # Before the first test: Test::Unit reports descriptors that a test leaves open.
    @reader, @writer = IO.pipe
  end

  # Runs the block beside the fibers.
  def around
    over = false
    Fiber.schedule { sleep(0.001) until over }
    Fiber.schedule { compute until over }
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

  def compute = 1000.times { |n| n * n }

  def talk
    @writer.write(".")
    sleep(0.0005)
  end
end
