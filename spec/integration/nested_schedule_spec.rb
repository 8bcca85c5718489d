# frozen_string_literal: true

RSpec.describe "Fiber.schedule in fibers" do
  it "runs the child at once, until it first waits" do
    order = []
    Heddle.run do
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
    with_scheduler do
      Fiber.schedule do
        order << :child
        sleep(0)
        order << :child_again
      end
      order << :root
    end
    expect(order).to eq %i[child root child_again]
  end

  it "runs a child of a generator, and the generator continues" do
    order = []
    Heddle.run do
      numbers = Enumerator.new do |yielder|
        Fiber.schedule do
          order << :child
          sleep(0)
          order << :child_again
        end
        order << :generator
        yielder << :value
      end
      order << numbers.next
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
    Heddle.run do
      gate = Queue.new
      Fiber.schedule { order << gate.pop }
      gate.push(:other)
      Fiber.schedule { sleep(0) }
      order << :parent
    end
    expect(order).to eq %i[parent other]
  end

  it "starts 160 fibers within a few rounds of busy fibers" do
    turns = 0
    Heddle.run do
      starting = true
      busy = lambda do
        while starting
          turns += 1
          sleep(0)
        end
      end
      20.times { Fiber.schedule(&busy) }
      160.times { Fiber.schedule { sleep(0) } }
      starting = false
    end
    expect(turns / 20).to be < 40
  end

  it "starves no fiber when a parent starts children for ever" do
    finished = false
    Heddle.run do
      Fiber.schedule do
        100.times { sleep(0) }
        finished = true
      end
      Fiber.schedule { nil } until finished
    end
    expect(finished).to be true
  end

  it "waits for grandchildren at the end of Heddle.run" do
    ended = []
    Heddle.run do
      Fiber.schedule do
        Fiber.schedule do
          sleep(0.005)
          ended << :grandchild
        end
        ended << :child
      end
    end
    expect(ended).to eq %i[child grandchild]
  end

  it "runs 10,000 children, each of which schedules the next" do
    count = 0
    child = lambda do
      count += 1
      sleep(0)
      Fiber.schedule(&child) if count < 10_000
    end
    Heddle.run(&child)
    expect(count).to eq 10_000
  end
end
