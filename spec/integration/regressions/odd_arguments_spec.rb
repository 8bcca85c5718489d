# frozen_string_literal: true

# In a process of its own, since a fault here ends Ruby.
RSpec.describe "Heddle::Scheduler" do
  # These methods end the process or the scheduler, or close IOs of other examples.
  left_out = %i[initialize initialize_copy scheduler_close close run io_close fork]

  it "accepts any object for any argument of its methods, or raises", timeout: 60 do
    output, errors, status = run_ruby(<<~RUBY, timeout: 50)
      require "heddle"
      require "timeout"
      left_out = #{left_out.inspect}
      ended = Fiber.new {}.tap(&:resume)
      objects = [
        nil, -1, 2**70, Float::NAN, "x", [], {}, BasicObject.new, Object.new.freeze, Fiber.allocate, ended,
        Heddle::YieldingFiber.allocate, Fiber.new {}.freeze, IO.allocate, IO::Buffer.allocate, Mutex.new, Class.new
      ]
      scheduler_class = Heddle::Scheduler
      hooks = scheduler_class.instance_methods(false) + scheduler_class.private_instance_methods(false) - left_out
      internals = scheduler_class.singleton_class.private_instance_methods(false)
      calls = 0
      [*hooks.map { |name| [:hook, name] }, *internals.map { |name| [:internal, name] }].each do |kind, name|
        Heddle.run do
          receiver = kind == :hook ? Fiber.scheduler : scheduler_class
          arity = receiver.method(name).arity
          (arity.zero? ? [nil] : objects).each do |object|
            calls += 1
            Timeout.timeout(0.002) { receiver.__send__(name, *[object] * (arity.negative? ? 2 : arity)) { nil } }
          rescue Exception
            nil
          end
        end
      rescue Exception
        nil
      end
      GC.start
      puts calls
    RUBY

    expect([errors[/\\[BUG\\].*/], status.success?, output.to_i]).to match [nil, true, be > 300]
  end
end
