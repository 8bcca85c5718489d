# frozen_string_literal: true

RSpec.describe "ConditionVariable in fibers" do
  let(:mutex) { Mutex.new }
  let(:condition) { ConditionVariable.new }

  before { [mutex, condition] }

  it "makes a fiber wait until it is signalled" do
    events = []
    Heddle.run do
      Fiber.schedule do
        mutex.synchronize do
          condition.wait(mutex)
          events << :signalled
        end
      end
      events << :before
      mutex.synchronize { condition.signal }
    end
    expect(events).to eq %i[before signalled]
  end

  it "releases the mutex while a fiber waits, and locks it again afterwards" do
    owned = nil
    Heddle.run do
      Fiber.schedule do
        mutex.synchronize do
          condition.wait(mutex)
          owned = mutex.owned?
        end
      end
      expect(mutex).not_to be_locked
      condition.signal
    end
    expect(owned).to be true
  end

  it "distinguishes a timeout from a signal" do
    answers = Heddle.run do
      mutex.synchronize do
        timed_out = condition.wait(mutex, 0.001)
        # It waits for the mutex, which the next wait unlocks.
        Fiber.schedule { mutex.synchronize { condition.signal } }
        [timed_out, condition.wait(mutex, 60)]
      end
    end
    expect(answers).to match [nil, be_truthy]
  end

  it "distinguishes a signal from a timeout that expires later" do
    answer = virtually do
      mutex.synchronize do
        Fiber.schedule do
          # Locks it as soon as the wait has unlocked it, and keeps it until the timeout has expired.
          mutex.synchronize { condition.signal && sleep(0.6) }
        end
        condition.wait(mutex, 0.5)
      end
    end
    expect(answer).to be_truthy
  end

  it "wakes one fiber by signal" do
    woken = []
    Heddle.run do
      3.times { |number| Fiber.schedule { mutex.synchronize { woken << number if condition.wait(mutex) } } }
      condition.signal
      pass_until { woken.any? }
      expect(woken).to eq [0]
      condition.broadcast
    end
    expect(woken).to eq [0, 1, 2]
  end

  it "wakes all fibers by broadcast" do
    woken = []
    Heddle.run do
      3.times { |number| Fiber.schedule { mutex.synchronize { woken << number if condition.wait(mutex) } } }
      condition.broadcast
    end
    expect(woken).to eq [0, 1, 2]
  end

  it "returns when the timeout expires, with the mutex locked" do
    owned = nil
    took = seconds do
      owned = Heddle.run do
        mutex.synchronize do
          condition.wait(mutex, 0.02)
          mutex.owned?
        end
      end
    end
    expect([owned, took]).to match [true, be >= 0.02]
  end

  it "returns on a signal that comes before the timeout" do
    answer = virtually do
      Fiber.schedule { sleep(0.005) && condition.signal }
      mutex.synchronize { condition.wait(mutex, 60) }
    end
    expect(answer).to be_truthy
  end

  it "wakes a fiber from another thread" do
    ready = false
    seen = Heddle.run do
      signaller = Thread.new do
        mutex.synchronize do
          ready = true
          condition.signal
        end
      end
      mutex.synchronize { condition.wait(mutex) until ready }
      signaller.join
      ready
    end
    expect(seen).to be true
  end

  it "lets two fibers play ping-pong" do
    turns = []
    Heddle.run do
      turn = :ping
      { ping: :pong, pong: :ping }.each do |mine, other|
        Fiber.schedule do
          mutex.synchronize do
            50.times do
              condition.wait(mutex) until turn == mine
              turns << mine
              turn = other
              condition.signal
            end
          end
        end
      end
    end
    expect(turns).to eq %i[ping pong] * 50
  end
end
