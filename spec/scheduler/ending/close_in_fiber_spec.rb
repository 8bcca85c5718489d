# frozen_string_literal: true

RSpec.describe "Heddle::Scheduler#close in a scheduled fiber" do
  let(:seen) { [] }

  it "returns when the other fibers have ended" do
    Heddle.run do
      Fiber.schedule { sleep(a_moment) && seen.push(:other) }
      Fiber.scheduler.close
      seen << :closed
    end

    expect(seen).to eq %i[other closed]
  end

  it "lets the fiber continue without a scheduler" do
    after = Heddle.run do
      Fiber.scheduler.close
      sleep(a_moment)
      [Fiber.scheduler, IO.pipe { |reader, writer| (writer << "x") && reader.readpartial(1) }]
    end

    expect(after).to eq [nil, "x"]
  end

  it "keeps the hooks working in the fiber that closed the scheduler" do
    woken = nil
    with_scheduler do |scheduler|
      Fiber.schedule do
        sleep(0)
        scheduler.close
        woken = scheduler.kernel_sleep(0.001)
      end
      scheduler.run
    end

    expect(woken).to be false
  end

  it "lets each of several fibers continue that close at the same time" do
    with_scheduler do |scheduler|
      2.times do
        Fiber.schedule do
          sleep(a_moment)
          scheduler.close
        ensure
          seen << :closed
        end
      end
    end

    expect(seen).to eq %i[closed closed]
  end

  it "works in a generator, whose resumer continues" do
    Heddle.run do
      enumerator = Enumerator.new do |yielder|
        Fiber.scheduler.close
        yielder << 1
      end
      seen << enumerator.next
      sleep(a_moment)
      seen << 2
    end

    expect(seen).to eq [1, 2]
  end

  it "keeps the time limit of the fiber that calls it" do
    gate = Queue.new
    error = Heddle.run do
      Timeout.timeout(0.02) do
        Fiber.schedule { gate.pop }
        Fiber.scheduler.close
      end
    rescue Timeout::Error => e
      gate.push(:open)
      e
    end

    expect(error).to be_a(Timeout::Error)
  end

  it "raises FiberError in a spun fiber, since its parent waits for it" do
    expect { Heddle.run { Heddle.await_all(Heddle.spin { Fiber.scheduler.close }) } }
      .to raise_error(FiberError, /one of them waits for this one/)
  end

  it "raises FiberError in a fiber that another fiber awaits" do
    closing = lambda do
      until_others_wait
      Fiber.scheduler.close
    rescue FiberError => e
      e.message
    end

    expect(Heddle.run { Heddle.await(Fiber.schedule(&closing)) }).to match(/one of them waits for this one/)
  end

  %i[close run].each do |method|
    it "raises FiberError in a fiber that then awaits the one that waits in ##{method}" do
      awaited = Heddle.run do
        waiting = Fiber.schedule { Fiber.scheduler.public_send(method) && seen.push(method) }
        Heddle.await(waiting)
      rescue FiberError => e
        [e.message, seen.dup]
      end

      expect(awaited).to match([/waits in Heddle::Scheduler#close or #run until all other fibers have ended/, []])
    end
  end

  it "raises FiberError in a fiber that calls #run while its parent waits for it" do
    expect { Heddle.run { Heddle.await(Heddle.spin { Fiber.scheduler.run }) } }
      .to raise_error(FiberError, /Scheduler#run waits for .* one of them waits for this one/)
  end

  it "lets a fiber that has called #run be awaited when its wait has been broken off" do
    value = Heddle.run do
      waiting = Fiber.schedule do
        Fiber.scheduler.run
      rescue RuntimeError
        Heddle.snooze
        :broken_off
      end
      waiting.raise("enough")
      Heddle.await(waiting)
    end

    expect(value).to eq :broken_off
  end
end
