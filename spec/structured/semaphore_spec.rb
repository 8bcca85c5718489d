# frozen_string_literal: true

RSpec.describe Heddle::Semaphore do
  it "admits no more fibers than it has permits" do
    inside = most = 0
    semaphore = described_class.new(3)
    Heddle.run do
      Heddle.await_all(*Array.new(20) do
        Heddle.spin do
          semaphore.acquire do
            most = [most, inside += 1].max
            sleep(0.001)
            inside -= 1
          end
        end
      end)
    end

    expect([most, semaphore.available]).to eq([3, 3])
  end

  it "admits fibers in the order of their requests" do
    order = []
    semaphore = described_class.new
    Heddle.run do
      semaphore.acquire
      fibers = Array.new(5) { |i| Heddle.spin { semaphore.acquire { order << i } } }
      Heddle.snooze
      semaphore.release
      order << (semaphore.try_acquire ? :overtook : :waited)
      Heddle.await_all(*fibers)
    end

    expect(order).to eq([:waited, 0, 1, 2, 3, 4])
  end

  it "returns the block's value, and is released when the block raises" do
    semaphore = described_class.new
    values = Heddle.run do
      begin
        semaphore.acquire { raise KeyError }
      rescue KeyError
        nil
      end
      [semaphore.acquire { :value }, semaphore.available]
    end

    expect(values).to eq([:value, 1])
  end

  it "returns false when the time limit expires, without taking a permit" do
    semaphore = described_class.new
    answers = Heddle.run do
      [semaphore.acquire, semaphore.acquire(timeout: 0.001), semaphore.acquire(timeout: 0.001) { :inside },
       semaphore.waiting]
    end

    expect(answers).to eq([true, false, nil, 0])
  end

  it "loses no permit to a waiter that is cancelled as it is admitted" do
    semaphore = described_class.new
    Heddle.run do
      semaphore.acquire
      doomed = Heddle.spin { semaphore.acquire { :never } }
      patient = Heddle.spin { semaphore.acquire { :inside } }
      2.times { Heddle.snooze }
      Heddle.terminate(doomed)
      semaphore.release

      expect(Heddle.await_all(doomed, patient)).to(satisfy { |values| values.last == :inside })
    end
    expect(semaphore.available).to eq(1)
  end

  it "can be shared by fibers of several schedulers and plain threads" do
    inside = most = 0
    semaphore = described_class.new(2)
    work = lambda do
      semaphore.acquire do
        most = [most, inside += 1].max
        sleep(0.0005)
        inside -= 1
      end
    end
    threads = Array.new(2) do
      Thread.new { Heddle.run { Heddle.await_all(*Array.new(5) { Heddle.spin(&work) }) } }
    end
    threads.concat(Array.new(5) { Thread.new(&work) }).each(&:join)

    expect([most <= 2, semaphore.available, semaphore.waiting]).to eq([true, 2, 0])
  end
end
