# frozen_string_literal: true

RSpec.describe "A fiber that is inside Fiber#raise", :regression do
  let(:cancelled) { Class.new(StandardError) }

  before { cancelled }

  it "is awaited when the scheduler closes" do
    events = []
    with_scheduler do
      interrupted = Fiber.schedule do
        sleep
      rescue cancelled
        events << :interrupted
      end
      Fiber.schedule do
        interrupted.raise(cancelled)
        sleep(a_moment)
        events << :raiser
      end
    end
    expect(events).to eq %i[interrupted raiser]
  end

  it "is awaited when the scheduler closes, when it is inside Fiber#kill" do
    events = []
    with_scheduler do
      interrupted = Fiber.schedule { sleep }
      Fiber.schedule do
        interrupted.kill
        sleep(a_moment)
        events << :killer
      end
    end
    expect(events).to eq [:killer]
  end

  it "may be raised into by the fiber that it interrupts, which continues" do
    events = []
    virtually do
      raiser = nil
      interrupted = Fiber.schedule do
        sleep
      rescue cancelled
        raiser.raise(cancelled, "back")
        events << "interrupted goes on"
      end
      raiser = Fiber.schedule do
        raiser = Fiber.current
        interrupted.raise(cancelled)
      rescue cancelled => e
        sleep(1)
        events << e.message
      end
    end
    expect(events).to contain_exactly("back", "interrupted goes on")
  end

  it "may be raised into by a third fiber, which continues" do
    events = []
    virtually do
      interrupted = Fiber.schedule do
        sleep
      rescue cancelled
        sleep(1)
        events << :interrupted
      end
      raiser = nil
      Fiber.schedule do
        raiser = Fiber.current
        interrupted.raise(cancelled)
      rescue cancelled
        events << :raiser
      end
      raiser.raise(cancelled) if raiser.alive?
      events << :third
    end
    expect(events).to include(:interrupted, :third)
  end

  it "may be killed by the fiber that it interrupts, which continues" do
    events = []
    Heddle.run do
      raiser = nil
      interrupted = Fiber.schedule do
        sleep
      rescue cancelled
        raiser.kill
        events << :interrupted
      end
      Fiber.schedule do
        raiser = Fiber.current
        interrupted.raise(cancelled)
        events << :not_killed
      ensure
        events << :ensured
      end
    end
    expect(events).to contain_exactly(:ensured, :interrupted)
  end

  it "may be killed by the fiber that it interrupts, and the scheduler closes" do
    events = []
    with_scheduler do
      raiser = nil
      interrupted = Fiber.schedule do
        sleep
      rescue cancelled
        raiser.kill
        sleep(a_moment)
        events << :interrupted
      end
      Fiber.schedule do
        raiser = Fiber.current
        interrupted.raise(cancelled)
      end
    end
    expect(events).to eq [:interrupted]
  end
end
