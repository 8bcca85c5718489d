# frozen_string_literal: true

# The gem cannot be installed everywhere, so the programs use a meter that has the methods which the gem documents.
RSpec.describe "heddle/metrics/opentelemetry" do
  program = <<~RUBY
    $LOADED_FEATURES << "opentelemetry-metrics-api.rb"
    class Meter
      Instrument = Data.define(:kind, :callback, :unit, :description)
      attr_reader :instruments

      def initialize = @instruments = {}

      %i[observable_counter observable_up_down_counter observable_gauge].each do |kind|
        define_method(:"create_\#{kind}") do |name, callback:, unit: nil, description: nil|
          @instruments[name] = Instrument.new(kind, callback, unit, description)
        end
      end

      def value(name) = @instruments.fetch(name).callback.call
    end
    require "heddle/metrics/opentelemetry"
    meter = Meter.new
    register = ->(scheduler) { Heddle::Metrics::OpenTelemetry.register(scheduler, meter:) }
  RUBY

  define_method(:printed) do |text|
    output, errors, status = run_ruby(program + text)
    expect([errors, status.success?]).to eq ["", true]
    output
  end

  it "creates instruments that observe the scheduler, from any thread" do
    expect(printed(<<~RUBY)).to eq "[2, 1, true]\n"
      Heddle.run do
        sleeping = Fiber.schedule { sleep }
        register.call(Fiber.scheduler)
        names = %w[heddle.fibers.spawned heddle.timers.pending heddle.kernel.park_duration]
        spawned, timers, parked = Thread.new { names.map { |name| meter.value(name) } }.value
        p [spawned, timers + 1, parked.is_a?(Float)]
        sleeping.kill
      end
    RUBY
  end

  it "observes percentiles of the histograms that stats: :detailed makes" do
    expect(printed(<<~RUBY)).to eq "true\n"
      Heddle.run(stats: :detailed) do
        20.times { sleep(0) }
        register.call(Fiber.scheduler)
        p meter.value("heddle.run_queue.slice_duration.p50").positive?
      end
    RUBY
  end

  it "observes nothing of the histograms otherwise" do
    expect(printed(<<~RUBY)).to eq "nil\n"
      register.call(Heddle::Scheduler.new)
      p meter.value("heddle.run_queue.slice_duration.p99")
    RUBY
  end

  it "gives each instrument a name, a unit and a description that OpenTelemetry accepts" do
    expect(printed(<<~RUBY)).to eq "true\n"
      register.call(Heddle::Scheduler.new)
      p(meter.instruments.all? do |name, instrument|
        name.match?(%r{\\A[a-zA-Z][-./\\w]{0,254}\\z}) && %w[s 1].include?(instrument.unit) &&
          !instrument.description.empty?
      end)
    RUBY
  end

  it "refuses what is no scheduler" do
    expect(printed(<<~RUBY)).to eq "wrong argument type NilClass (expected Heddle::Scheduler)\n"
      begin
        register.call(nil)
      rescue TypeError => e
        puts e.message
      end
    RUBY
  end
end
