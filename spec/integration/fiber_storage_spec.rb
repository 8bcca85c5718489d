# frozen_string_literal: true

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
    Heddle.run do
      5.times do |number|
        Fiber.schedule do
          Fiber[:number] = number
          sleep(0.001 * (5 - number))
          seen << [number, Fiber[:number]]
        end
      end
    end
    expect(seen).to match_array(Array.new(5) { |number| [number, number] })
  end

  it "is visible in a generator that waits" do
    seen = Heddle.run do
      Fiber[:request] = :outside
      Enumerator.new { |yielder| yielder << Fiber[:request].tap { sleep(0.001) } }.next
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
