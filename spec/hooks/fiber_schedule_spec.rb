# frozen_string_literal: true

RSpec.describe "Fiber.schedule in fibers" do
  it "runs the child at once, until it first waits" do
    order = []
    # After a tick, fibers that were woken would run first.
    Heddle.run(tick: 60, quantum: 60) do
      Fiber.schedule do
        order << :child
        sleep(0)
        order << :child_again
      end
      order << :parent
    end
    expect(order).to eq %i[child parent child_again]
  end

  it "returns to the parent when the child ends without waiting" do
    order = []
    Heddle.run do
      Fiber.schedule { order << :child }
      order << :parent
    end
    expect(order).to eq %i[child parent]
  end

  it "returns to the parent when the child waits for ever" do
    reached = false
    Heddle.run do
      gate = Queue.new
      Fiber.schedule do
        Fiber.schedule { gate.pop }
        reached = true
        gate.push(:open)
      end
    end
    expect(reached).to be true
  end

  it "returns to the parent when the child ends with an error" do
    order = []
    expect do
      Heddle.run do
        Fiber.schedule { raise "of the child" }
        order << :parent
      end
    end.to output(/of the child/).to_stderr
    expect(order).to eq [:parent]
  end

  it "returns to each parent over many levels" do
    returned = []
    nest = lambda do |level|
      Fiber.schedule { nest.call(level - 1) } if level.positive?
      sleep(0)
      returned << level
    end
    Heddle.run { nest.call(20) }
    expect(returned).to match_array [*0..20]
  end

  it "returns a Fiber, whether the fiber is still alive or not" do
    fibers = Heddle.run do
      gate = Queue.new
      [Fiber.schedule { :done }, Fiber.schedule { gate.pop }].tap { gate.push(:open) }
    end
    expect(fibers).to all be_an_instance_of(Fiber)
  end

  it "returns a non-blocking fiber" do
    blocking = []
    Heddle.run { Fiber.schedule { blocking << Fiber.current.blocking? } }
    expect(blocking).to eq [false]
  end

  it "runs a child of a blocking root fiber" do
    order = []
    gate = Queue.new
    with_scheduler do
      Fiber.schedule do
        order << :child
        gate.pop
        order << :child_again
      end
      order << :root
      gate << :open
    end
    expect(order).to eq %i[child root child_again]
  end

  it "runs a child of a generator, and the generator continues" do
    order = []
    gate = Queue.new
    Heddle.run do
      numbers = Enumerator.new do |yielder|
        Fiber.schedule do
          order << :child
          gate.pop
          order << :child_again
        end
        order << :generator
        yielder << :value
      end
      order << numbers.next
      gate << :open
    end
    expect(order).to eq %i[child generator value child_again]
  end

  it "runs siblings in the order in which they became ready" do
    order = []
    Heddle.run do
      gate = Queue.new
      3.times do |number|
        Fiber.schedule do
          gate.pop
          order << [:first, number]
          sleep(0)
          order << [:second, number]
        end
      end
      gate.close
    end
    expect(order).to eq %i[first second].product([0, 1, 2])
  end

  it "returns to the parent ahead of other runnable fibers, when the child first waits" do
    order = []
    # After a tick, fibers that were woken would run first.
    Heddle.run(tick: 60, quantum: 60) do
      gate = Queue.new
      Fiber.schedule { order << gate.pop }
      gate.push(:other)
      Fiber.schedule { sleep(0) }
      order << :parent
    end
    expect(order).to eq %i[parent other]
  end

  it "starves no fiber when a parent starts children for ever" do
    # In a process of its own, because the number of children has no bound.
    finished = in_child do
      finished = false
      Heddle.run do
        Fiber.schedule do
          100.times { sleep(0) }
          finished = true
        end
        Fiber.schedule { nil } until finished
      end
      finished
    end
    expect(finished).to be true
  end

  it "waits for grandchildren at the end of Heddle.run" do
    ended = []
    virtually do
      Fiber.schedule do
        Fiber.schedule do
          sleep(1)
          ended << :grandchild
        end
        ended << :child
      end
    end
    expect(ended).to eq %i[child grandchild]
  end

  it "runs 10,000 children, each of which schedules the next" do
    counted = in_child do
      count = 0
      child = lambda do
        count += 1
        sleep(0)
        Fiber.schedule(&child) if count < 10_000
      end
      Heddle.run(&child)
      count
    end
    expect(counted).to eq 10_000
  end
end

RSpec.describe "Fiber storage" do
  it "is inherited by a scheduled fiber" do
    seen = nil
    Heddle.run do
      Fiber[:request] = 1
      Fiber.schedule { seen = Fiber[:request] }
    end
    expect(seen).to eq 1
  end

  it "is inherited by the block of Heddle.run" do
    seen = Thread.new do
      Fiber[:request] = 2
      Heddle.run { Fiber[:request] }
    end.value
    expect(seen).to eq 2
  end

  it "is private to the fiber once it is changed" do
    seen = Heddle.run do
      Fiber[:request] = :parent
      Fiber.schedule { Fiber[:request] = :child }
      Fiber[:request]
    end
    expect(seen).to eq :parent
  end

  it "stays with its fiber across waits" do
    seen = []
    virtually do
      5.times do |number|
        Fiber.schedule do
          Fiber[:number] = number
          sleep(5 - number)
          seen << [number, Fiber[:number]]
        end
      end
    end
    expect(seen).to match_array(Array.new(5) { |number| [number, number] })
  end

  it "is visible in a generator that waits" do
    seen = virtually do
      Fiber[:request] = :outside
      Enumerator.new { |yielder| yielder << Fiber[:request].tap { sleep(1) } }.next
    end
    expect(seen).to eq :outside
  end

  it "is inherited by a thread that a fiber starts" do
    seen = Heddle.run do
      Fiber[:request] = :fiber
      Thread.new { Fiber[:request] }.value
    end
    expect(seen).to eq :fiber
  end

  it "isn't mixed up with the storage of a fiber that raises into this one" do
    seen = nil
    Heddle.run do
      waiting = Fiber.schedule do
        Fiber[:name] = :waiting
        sleep
      rescue StandardError
        seen = Fiber[:name]
      end
      Fiber[:name] = :raising
      waiting.raise("over")
    end
    expect(seen).to eq :waiting
  end

  it "leaves Thread#[] local to each fiber" do
    seen = []
    Heddle.run do
      Thread.current[:name] = :block
      Fiber.schedule { seen << Thread.current[:name] }
      sleep(0)
      seen << Thread.current[:name]
    end
    expect(seen).to eq [nil, :block]
  end
end
