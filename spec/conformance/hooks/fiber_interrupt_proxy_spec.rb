# frozen_string_literal: true

# From version 5 of the interface on, Ruby passes a proxy object for the fiber, which is valid during an operation.
RSpec.describe Heddle::Scheduler, "#fiber_interrupt with a proxy for the fiber" do
  # Behaves as Ruby's proxy does, as far as that is documented.
  let(:proxy_class) do
    Struct.new(:fiber, :over) do
      def alive? = !over && fiber.alive?
      def raise(*) = alive? && fiber.raise(*)
      def transfer(*) = alive? && fiber.transfer(*)
    end
  end

  def proxy_of(fiber)
    proxy_class.new(fiber, false)
  end

  # Reads until it is interrupted, and records the error.
  def reading_fiber(reader, seen, proxies = [])
    Fiber.schedule do
      proxies << proxy_of(Fiber.current)
      begin
        reader.read(1)
      ensure
        proxies.last.over = true
      end
    rescue IOError => e
      seen << e.message
    end
  end

  let(:error) { IOError.new("interrupted") }

  around { |example| IO.pipe { |reader, writer| @ends = [reader, writer] and example.run } }

  it "raises in a waiting fiber, and returns at once" do
    seen = []
    Heddle.run do
      fiber = reading_fiber(@ends.first, seen)
      Fiber.scheduler.fiber_interrupt(proxy_of(fiber), error)
      seen << :back
      sleep(0.001)
    end

    expect(seen).to eq [:back, "interrupted"]
  end

  it "raises in the fiber when another thread calls it" do
    seen = []
    Heddle.run do
      fiber = reading_fiber(@ends.first, seen)
      scheduler = Fiber.scheduler
      Thread.new { scheduler.fiber_interrupt(proxy_of(fiber), error) }.join
      sleep(0.001)
    end

    expect(seen).to eq ["interrupted"]
  end

  it "raises in the fiber before it returns when the root fiber calls it" do
    seen = []
    with_scheduler do |scheduler|
      proxies = []
      reading_fiber(@ends.first, seen, proxies)
      scheduler.fiber_interrupt(proxies.first, error)
      scheduler.unblock(:mutex, Fiber.current)
      seen << :back
    end

    expect(seen).to eq ["interrupted", :back]
  end

  it "doesn't raise in a fiber whose operation has ended" do
    seen = []
    Heddle.run do
      proxies = []
      fiber = Fiber.schedule { sleep(0.01) && seen.push(:slept) }
      proxies << proxy_of(fiber).tap { |proxy| proxy.over = true }
      Fiber.scheduler.fiber_interrupt(proxies.first, error)
    end

    expect(seen).to eq [:slept]
  end

  it "refuses an object that is neither a fiber nor a proxy for one" do
    expect { Heddle.run { Fiber.scheduler.fiber_interrupt(Object.new, error) } }.to raise_error(TypeError)
  end
end
