# frozen_string_literal: true

RSpec.describe Heddle::Semaphore do
  it "admits no more fibers than it has permits" do
    inside = most = 0
    semaphore = described_class.new(3)
    virtually do
      Heddle.await_all(*Array.new(20) do
        Heddle.spin do
          semaphore.acquire do
            most = [most, inside += 1].max
            sleep(1)
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
    answers = virtually do
      [semaphore.acquire, semaphore.acquire(timeout: 60), semaphore.acquire(timeout: 60) { :inside },
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
      Heddle.stop(doomed)
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
        sleep(a_moment)
        inside -= 1
      end
    end
    threads = Array.new(2) do
      Thread.new { Heddle.run { Heddle.await_all(*Array.new(5) { Heddle.spin(&work) }) } }
    end
    threads.concat(Array.new(5) { Thread.new(&work) }).each(&:join)

    expect([most <= 2, semaphore.available, semaphore.waiting]).to eq([true, 2, 0])
  end

  it "refuses to give back a permit that is not taken", :regression do
    expect { described_class.new(2).release }
      .to raise_error(ThreadError, "Heddle::Semaphore#release: no permit is taken (2 of 2 are free)")
  end

  it "has no more permits than before after a release that is refused", :regression do
    semaphore = described_class.new
    error_of { semaphore.release }

    expect([semaphore.available, semaphore.try_acquire, semaphore.try_acquire]).to eq([1, true, false])
  end

  it "gives a permit that another thread gives back to the fiber that waits" do
    semaphore = described_class.new
    admitted = Heddle.run do
      semaphore.acquire
      waiter = Heddle.spin { semaphore.acquire { :inside } }
      pass_until { semaphore.waiting == 1 }
      Thread.new { semaphore.release }.join
      [Heddle.await(waiter), semaphore.available]
    end

    expect(admitted).to eq([:inside, 1])
  end
end
