# frozen_string_literal: true

# From version 5 of the interface on, Ruby passes an object that stands for the fiber as long as an operation lasts.
RSpec.describe Heddle::Scheduler, "#fiber_interrupt with a stand-in for the fiber" do
  # What Ruby's does, as far as it is documented.
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

  # Reads until it is interrupted; then says how.
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

  it "raises in a fiber that waits, and comes back at once" do
    seen = []
    Heddle.run do
      fiber = reading_fiber(@ends.first, seen)
      Fiber.scheduler.fiber_interrupt(proxy_of(fiber), error)
      seen << :back
      sleep(0.001)
    end

    expect(seen).to eq [:back, "interrupted"]
  end

  it "raises in it when another thread calls" do
    seen = []
    Heddle.run do
      fiber = reading_fiber(@ends.first, seen)
      scheduler = Fiber.scheduler
      Thread.new { scheduler.fiber_interrupt(proxy_of(fiber), error) }.join
      sleep(0.001)
    end

    expect(seen).to eq ["interrupted"]
  end

  it "raises in it when the root calls, before that returns" do
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

  it "leaves a fiber alone whose operation is over" do
    seen = []
    Heddle.run do
      proxies = []
      fiber = Fiber.schedule { sleep(0.01) && seen.push(:slept) }
      proxies << proxy_of(fiber).tap { |proxy| proxy.over = true }
      Fiber.scheduler.fiber_interrupt(proxies.first, error)
    end

    expect(seen).to eq [:slept]
  end

  it "refuses what neither is a fiber nor stands for one" do
    expect { Heddle.run { Fiber.scheduler.fiber_interrupt(Object.new, error) } }.to raise_error(TypeError)
  end
end
