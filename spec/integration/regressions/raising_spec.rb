# frozen_string_literal: true

RSpec.describe "A fiber that is inside Fiber#raise" do
  let(:cancelled) { Class.new(StandardError) }

  before { cancelled }

  it "is awaited when the scheduler closes" do
    events = []
    with_scheduler do
      struck = Fiber.schedule do
        sleep
      rescue cancelled
        events << :struck
      end
      Fiber.schedule do
        struck.raise(cancelled)
        sleep(0.001)
        events << :raiser
      end
    end
    expect(events).to eq %i[struck raiser]
  end

  it "is awaited when the scheduler closes, when it is inside Fiber#kill" do
    events = []
    with_scheduler do
      struck = Fiber.schedule { sleep }
      Fiber.schedule do
        struck.kill
        sleep(0.001)
        events << :killer
      end
    end
    expect(events).to eq [:killer]
  end

  it "may be raised into by the fiber that it strikes, which goes on" do
    events = []
    Heddle.run do
      raiser = nil
      struck = Fiber.schedule do
        sleep
      rescue cancelled
        raiser.raise(cancelled, "back")
        events << "struck goes on"
      end
      raiser = Fiber.schedule do
        raiser = Fiber.current
        struck.raise(cancelled)
      rescue cancelled => e
        sleep(0.001)
        events << e.message
      end
    end
    expect(events).to contain_exactly("back", "struck goes on")
  end

  it "may be raised into by a third fiber, which goes on" do
    events = []
    Heddle.run do
      struck = Fiber.schedule do
        sleep
      rescue cancelled
        sleep(0.001)
        events << :struck
      end
      raiser = nil
      Fiber.schedule do
        raiser = Fiber.current
        struck.raise(cancelled)
      rescue cancelled
        events << :raiser
      end
      raiser.raise(cancelled) if raiser.alive?
      events << :third
    end
    expect(events).to include(:struck, :third)
  end

  it "may be killed by the fiber that it strikes, which goes on" do
    events = []
    Heddle.run do
      raiser = nil
      struck = Fiber.schedule do
        sleep
      rescue cancelled
        raiser.kill
        events << :struck
      end
      Fiber.schedule do
        raiser = Fiber.current
        struck.raise(cancelled)
        events << :not_killed
      ensure
        events << :ensured
      end
    end
    expect(events).to contain_exactly(:ensured, :struck)
  end

  it "may be killed by the fiber that it strikes, and the scheduler closes" do
    events = []
    with_scheduler do
      raiser = nil
      struck = Fiber.schedule do
        sleep
      rescue cancelled
        raiser.kill
        sleep(0.001)
        events << :struck
      end
      Fiber.schedule do
        raiser = Fiber.current
        struck.raise(cancelled)
      end
    end
    expect(events).to eq [:struck]
  end
end
