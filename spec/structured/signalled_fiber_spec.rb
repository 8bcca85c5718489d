# frozen_string_literal: true

# What a `SignalException` ends, ends the whole thread. A fiber that awaits it must not go on as if it had a value.
RSpec.describe "A fiber that is ended by a SignalException" do
  signalled = proc { raise SignalException, "TERM" }

  # What the awaiting fiber and the root see. The awaiting fiber may be stopped before the exception reaches it.
  def seen(&wait)
    seen = []
    Heddle.run do
      Heddle.spin(background: true) { awaited(seen, &wait) }
      sleep
    ensure
      Heddle.snooze
      seen << :cleaned_up
    end
  rescue SignalException => e
    [seen - ["SIGTERM"], e.message]
  end

  def awaited(seen)
    seen << yield
  rescue SignalException => e
    seen << e.message
    raise
  end

  {
    "Heddle.await" => -> { Heddle.await(Heddle.spin(&signalled)) },
    "Heddle.await of a fiber of Fiber.schedule" => lambda {
      gate = Queue.new
      fiber = Fiber.schedule { gate.pop && signalled.call }
      # It runs when the current fiber waits.
      Heddle.spin { gate.push(true) }
      Heddle.await(fiber)
    },
    "Heddle.await_all" => -> { Heddle.await_all(Heddle.spin { sleep }, Heddle.spin(&signalled)) },
    "Heddle.map" => -> { Heddle.map([1], &signalled) },
    "Heddle.race" => -> { Heddle.race(-> { sleep }, signalled) },
    "Barrier#await_all" => -> { Heddle::Barrier.new.tap { |barrier| barrier.spin(&signalled) }.await_all }
  }.each do |name, wait|
    it "gives no value to a fiber that waits in #{name}, and is raised once in the root" do
      expect(seen(&wait)).to eq([[:cleaned_up], "SIGTERM"])
    end
  end

  it "does not let the root wait for ever for another fiber that it has ended" do
    expect(printed(<<~RUBY)).to eq "SIGTERM\nSIGTERM\n"
      require "heddle"
      $stdout.sync = true
      Fiber.set_scheduler(Heddle::Scheduler.new)
      gate = Queue.new
      signalled = Heddle.spin { gate.pop && raise(SignalException, "TERM") }
      awaiting = Heddle.spin do
        Heddle.spin { gate.push(true) }
        Heddle.await(signalled)
      ensure
        sleep(a_moment)
      end
      2.times do |time|
        time.zero? ? Fiber.scheduler.block(:nothing) : Heddle.await(awaiting)
      rescue SignalException => e
        puts e.message
      end
      exit!(true)
    RUBY
  end

  it "raises the exception in a fiber that awaits it" do
    seen = []
    expect do
      Heddle.run { Heddle.spin { awaited(seen) { Heddle.await(Heddle.spin(&signalled)) } } && sleep }
    end.to raise_error(SignalException, "SIGTERM")
    expect(seen).to eq(["SIGTERM"])
  end

  it "gives no value to a fiber of Fiber.schedule that awaits it, and is raised once in the root" do
    found = seen do
      gate = Queue.new
      Fiber.schedule { gate << (Heddle.await(Heddle.spin(&signalled)) rescue $!.message) } # rubocop:disable Style/RescueModifier,Style/SpecialGlobalVars
      gate.pop
    end

    expect(found).to eq([[:cleaned_up], "SIGTERM"])
  end
end
