# frozen_string_literal: true

require "timeout"

RSpec.describe "Heddle.shield" do
  it "holds back a time limit until its block has ended" do
    events = []
    virtually do
      Heddle.move_on_after(1) do
        Heddle.shield { sleep(5) && (events << :finished) }
        events << :not_reached
      end
      events << :moved_on
    end

    expect(events).to eq(%i[finished moved_on])
  end

  it "holds back Heddle.stop" do
    events = []
    virtually do
      fiber = Heddle.spin do
        Heddle.shield { sleep(5) && (events << :finished) }
        events << :not_reached
      end
      Heddle.snooze
      Heddle.stop(fiber)
      Heddle.await(fiber)
    end

    expect(events).to eq([:finished])
  end

  it "holds back a child's error" do
    events = []
    virtually do
      Heddle.spin { raise KeyError }
      Heddle.shield { sleep(5) && (events << :finished) }
      sleep
    rescue KeyError
      events << :raised
    end

    expect(events).to eq(%i[finished raised])
  end

  it "holds back the end of a thread that is killed" do
    events = Queue.new
    ready = Queue.new
    gate = Queue.new
    thread = Thread.new do
      Heddle.run do
        Heddle.shield do
          ready.push(true)
          gate.pop
          sleep(a_moment)
          events.push(:finished)
        end
        events.push(:not_reached)
      end
    end
    ready.pop
    until_asleep(thread)
    thread.kill
    gate.push(:open)
    thread.join

    expect(Array.new(events.size) { events.pop }).to eq([:finished])
  end

  it "returns its block's value" do
    expect(virtually { Heddle.shield { sleep(1) && :value } }).to eq(:value)
  end

  it "propagates its block's error, and raises later what was held back" do
    events = []
    virtually do
      Heddle.move_on_after(1) do
        begin
          Heddle.shield { sleep(5) && raise(KeyError) }
        rescue KeyError
          events << :rescued
        end
        sleep
        events << :not_reached
      end
    end

    expect(events).to eq([:rescued])
  end

  it "lets time limits that are set in its block expire" do
    value = virtually do
      Heddle.shield { Heddle.move_on_after(1, value: :moved_on) { sleep } }
    end

    expect(value).to eq(:moved_on)
  end

  it "holds back a time limit that is set between two shields during the inner one only" do
    events = []
    virtually do
      Heddle.shield do
        Heddle.move_on_after(1) do
          Heddle.shield { sleep(5) && (events << :inner) }
          events << :not_reached
        end
        events << :outer
      end
    end

    expect(events).to eq(%i[inner outer])
  end

  it "lets a closed IO end a wait" do
    reader, writer = IO.pipe
    error = Heddle.run do
      Heddle.spin { reader.close }
      Heddle.shield { reader.read(1) }
    rescue IOError => e
      e
    end
    writer.close

    expect(error.message).to match(/closed/)
  end

  it "works without a scheduler" do
    expect(Thread.new { Heddle.shield { :value } }.value).to eq(:value)
  end

  it "ends with its block, however the block is left" do
    value = virtually do
      [1].each { Heddle.shield { break } }
      catch(:out) { Heddle.shield { throw :out } }
      Heddle.move_on_after(1, value: :moved_on) { sleep }
    end

    expect(value).to eq(:moved_on)
  end
end
