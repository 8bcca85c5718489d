# frozen_string_literal: true

RSpec.describe Heddle::Scheduler do
  %i[raising killing closing resuming transferring forked generation state run_scheduled
     resolution_error].each do |name|
    it "has no public #{name}" do
      expect(described_class).not_to respond_to(name)
    end
  end

  it "leaves Heddle without a public method trapping" do
    expect(Heddle).not_to respond_to(:trapping)
  end

  %i[dup clone].each do |name|
    it "refuses ##{name}" do
      expect { described_class.new.public_send(name) }.to raise_error(TypeError, "can't copy Heddle::Scheduler")
    end
  end

  it "refuses to copy an instance of a subclass, by its name" do
    stub_const("Mine", Class.new(described_class))

    expect { Mine.new.dup }.to raise_error(TypeError, "can't copy Mine")
  end

  it "is initialized once" do
    scheduler = described_class.new

    expect { scheduler.__send__(:initialize) }.to raise_error(TypeError, "already initialized scheduler")
  end

  # Ruby's own functions raise for such a fiber, and must not do so across Rust's frames.
  describe "given a fiber that was allocated and not initialized" do
    let(:fiber) { Fiber.allocate }

    # Calls the block with the scheduler, in one of the scheduler's fibers.
    def inside
      Heddle.run { yield Fiber.scheduler }
    end

    it "raises FiberError from Heddle.state" do
      expect { Heddle.state(fiber) }.to raise_error(FiberError, "uninitialized fiber")
    end

    {
      "unblock" => ->(scheduler, fiber) { scheduler.unblock(:blocker, fiber) },
      "fiber_interrupt" => ->(scheduler, fiber) { scheduler.fiber_interrupt(fiber, IOError.new) },
      "Heddle.stop" => ->(_, fiber) { Heddle.stop(fiber) },
      "Heddle.await" => ->(_, fiber) { Heddle.await(fiber) },
      "Fiber#raise" => ->(_, fiber) { fiber.raise("x") },
      "Fiber#kill" => ->(_, fiber) { fiber.kill }
    }.each do |name, call|
      it "raises FiberError from #{name}" do
        expect { inside { |scheduler| call[scheduler, fiber] } }.to raise_error(FiberError)
      end
    end

    it "raises FiberError from YieldingFiber#resume" do
      expect { inside { Heddle::YieldingFiber.allocate.resume } }.to raise_error(FiberError, "uninitialized fiber")
    end

    it "raises FiberError from Fiber.schedule if a program's Fiber.new returns one" do
      allow(Fiber).to receive(:new) { Fiber.allocate }

      expect { inside { Fiber.schedule { nil } } }.to raise_error(FiberError, "uninitialized fiber")
    end
  end

  describe "the code of scheduled fibers" do
    let(:body) { Heddle.const_get(:FiberBody, false) }

    it "raises FiberError in a fiber that asks for its block a second time" do
      expect { Heddle.run { body.begin_block(Fiber.scheduler) } }.to raise_error(FiberError)
    end

    it "raises FiberError in a fiber that the program makes" do
      expect { Fiber.new(&body::CODE).resume }.to raise_error(FiberError, /only its scheduler/)
    end

    it "ignores the arguments of a program that transfers to a spun fiber" do
      ended = false
      Heddle.run { Heddle.spin(background: true) { ended = true }.transfer(1, 2) }
      expect(ended).to be true
    end
  end
end
