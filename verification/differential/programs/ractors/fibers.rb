# frozen_string_literal: true

# A Ractor raises into its fibers and its threads

Warning[:experimental] = false
ractor = Ractor.new do
  fiber = Fiber.new { Fiber.yield rescue $!.message }
  fiber.resume
  thread = Thread.new { sleep rescue $!.message }
  Thread.pass until thread.stop?
  thread.raise("poke")
  [fiber.raise("poke"), thread.value]
end
say ractor.respond_to?(:value) ? ractor.value : ractor.take
