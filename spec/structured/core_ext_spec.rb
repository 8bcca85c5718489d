# frozen_string_literal: true

RSpec.describe "heddle/core_ext" do
  # The file changes core classes, so each example loads it in a process of its own.
  def core_ext(source)
    output, errors, status = run_ruby("require \"heddle/core_ext\"\n$stdout.sync = true\n#{source}")
    expect([errors, status.success?]).to eq(["", true])
    output
  end

  it "isn't loaded by require \"heddle\", which adds no such method to a class" do
    output, = run_ruby(<<~RUBY)
      before = [Fiber, Object, Kernel].map { |m| m.instance_methods + m.private_instance_methods }
      before << Fiber.methods
      require "heddle"
      after = [Fiber, Object, Kernel].map { |m| m.instance_methods + m.private_instance_methods }
      after << Fiber.methods
      p after.zip(before).map { |one, other| one - other }
    RUBY

    expect(output).to eq("[[], [], [], []]\n")
  end

  it "adds spin, snooze, suspend, every, after, cancel_after and move_on_after as private methods" do
    output = core_ext(<<~RUBY)
      names = %i[spin snooze suspend every after cancel_after move_on_after]
      p names.all? { |name| Object.new.respond_to?(name, true) }, names.none? { |name| Object.new.respond_to?(name) }
    RUBY

    expect(output).to eq("true\ntrue\n")
  end

  it "adds schedule, await, terminate and state to fibers" do
    output = core_ext(<<~RUBY)
      fiber = spin { suspend }
      p fiber.state
      snooze
      p fiber.state
      fiber.schedule(:value)
      p fiber.await, fiber.state
      p Fiber.current.state
      endless = spin { begin; sleep; ensure; puts "ensured"; end }
      snooze
      endless.terminate
      p endless.await
      p Fiber.await(spin { 1 }, spin { 2 })
      p Fiber.select(endless) == endless
    RUBY

    expect(output).to eq(":runnable\n:waiting\n:value\n:dead\n:running\nensured\nnil\n[1, 2]\ntrue\n")
  end

  it "lets fibers continue while the root sleeps" do
    output = core_ext(<<~RUBY)
      continued = []
      spin { sleep a_moment; continued << :first }
      sleep 0.001 until continued == [:first]
      spin { sleep a_moment; continued << :second }
      Kernel.sleep(0.001) until continued == [:first, :second]
      # In whole seconds.
      p sleep(a_moment).is_a?(Integer)
    RUBY

    expect(output).to eq("true\n")
  end

  it "leaves sleep unchanged elsewhere" do
    output = core_ext(<<~RUBY)
      p [sleep(0), sleep(a_moment), Thread.new { sleep(a_moment) }.value].all?(Integer)
      begin
        sleep(-1)
      rescue ArgumentError => e
        puts e.message
      end
      p Heddle.run { sleep(a_moment) }.is_a?(Integer)
    RUBY

    expect(output).to eq("true\ntime interval must not be negative\ntrue\n")
  end

  it "runs every and after in the root fiber" do
    output = core_ext(<<~RUBY)
      come = []
      after(0.001) { come << "after" }
      every(0.01) { come.size >= 3 && come.include?("after") ? break : come << "every" }
      p come.uniq.sort, come.count("after")
    RUBY

    expect(output).to eq(%(["after", "every"]\n1\n))
  end

  it "ends the root's fibers with the program" do
    output = core_ext(<<~RUBY)
      spin { begin; sleep; ensure; puts "ensured"; end }
      snooze
      puts "end"
    RUBY

    expect(output).to eq("end\nensured\n")
  end

  it "raises a fiber's error in the root fiber" do
    output = core_ext(<<~RUBY)
      spin { raise KeyError, "mine" }
      begin
        sleep
      rescue KeyError => e
        puts e.message
      end
    RUBY

    expect(output).to eq("mine\n")
  end

  it "defines Polyphony's name for the error of cancel_after, unless Polyphony is loaded" do
    output = core_ext("p Polyphony::Cancel")
    other, = run_ruby("module Polyphony; end; require 'heddle/core_ext'; p defined?(Polyphony::Cancel)")

    expect([output, other]).to eq(["Heddle::TimeoutError\n", "nil\n"])
  end

  it "works inside of Heddle.run, too" do
    output = core_ext(<<~RUBY)
      p(Heddle.run { move_on_after(0.01, value: :late) { spin { sleep }.await } })
    RUBY

    expect(output).to eq(":late\n")
  end
end
