# frozen_string_literal: true

RSpec.describe "On a thread without a scheduler" do
  # Runs the block on a new thread. Returns the error that it raises, and the thread's scheduler after it.
  def attempt
    Thread.new do
      yield
      [nil, Fiber.scheduler]
    rescue RuntimeError => e
      [e.message, Fiber.scheduler]
    end.value
  end

  {
    "Heddle.await" => -> { Heddle.await(Fiber.current) },
    "Heddle.await_all" => -> { Heddle.await_all(Fiber.current) },
    "Heddle.spin" => -> { Heddle.spin { nil } },
    "Heddle.snooze" => -> { Heddle.snooze },
    "Heddle.stop" => -> { Heddle.stop(Fiber.new { nil }) },
    "Heddle.every" => -> { Heddle.every(1) { nil } },
    "Heddle.after" => -> { Heddle.after(1) { nil } },
    "Heddle.cancel_after" => -> { Heddle.cancel_after(1) { nil } },
    "Heddle.move_on_after" => -> { Heddle.move_on_after(60) { nil } },
    "Heddle.trap" => -> { Heddle.trap("USR1") { nil } },
    "Heddle::Barrier#spin" => -> { Heddle::Barrier.new.spin { nil } }
  }.each do |name, call|
    it "#{name} says what to wrap in what, and sets no scheduler" do
      expect(attempt(&call))
        .to eq(["#{name} needs a scheduler, but this thread has none: wrap the program in Heddle.run { }", nil])
    end
  end
end
