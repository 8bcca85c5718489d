# frozen_string_literal: true

# The gem cannot be installed everywhere. Where it is missing, the programs run with a Meter that has the methods which
# the gem documents.
RSpec.describe "heddle/metrics/opentelemetry" do
  documented = <<~RUBY
    $LOADED_FEATURES << "opentelemetry-metrics-api.rb"
    module OpenTelemetry
      module Metrics
        class Meter
          def create_counter(name, unit: nil, description: nil) = nil
          def create_histogram(name, unit: nil, description: nil) = nil
          def create_observable_gauge(name, callback:, unit: nil, description: nil) = nil
        end
      end
    end
  RUBY
  let(:preamble) { <<~RUBY }
    begin
      require "opentelemetry-metrics-api"
    rescue LoadError
      eval(#{documented.dump})
    end
    # Keeps what is given to the gem's meter, and adds up what a counter or a histogram gets.
    class Meter < OpenTelemetry::Metrics::Meter
      Instrument = Struct.new(:options, :values) do
        def add(value, attributes: {}) = values[attributes] = values.fetch(attributes, 0) + value
        def record(value, attributes: {}) = (values[attributes] ||= []) << value
      end

      def instruments = @instruments ||= {}

      %i[create_counter create_histogram create_observable_gauge].each do |name|
        define_method(name) do |instrument, **options|
          super(instrument, **options)
          instruments[instrument] = Instrument.new(options, {})
        end
      end

      # Does what a reader does, on a thread as the SDK does it.
      def collect
        instruments.each_value do |instrument|
          next unless (callback = instrument.options[:callback])

          instrument.values = { {} => Thread.new { callback.call }.value }
        end
      end

      def values(name) = instruments.fetch(name).values
      def value(name) = values(name)[{}]
    end
    require "heddle/metrics/opentelemetry"
    meter = Meter.new
    register = ->(scheduler) { Heddle::Metrics::OpenTelemetry.register(scheduler, meter:) }
  RUBY

  it "creates instruments that get the scheduler's numbers at each collection, from any thread" do
    expect(printed(<<~RUBY)).to eq "[2, 1, true]\n"
      Heddle.run do
        sleeping = Fiber.schedule { sleep }
        register.call(Fiber.scheduler)
        meter.collect
        names = %w[heddle.fibers.spawned heddle.timers.pending heddle.kernel.park_duration]
        spawned, timers, parked = names.map { |name| meter.value(name) }
        p [spawned, timers + 1, parked.is_a?(Float)]
        sleeping.kill
      end
    RUBY
  end

  it "adds to a counter what it has grown by since the last collection" do
    expect(printed(<<~RUBY)).to eq "[1, 1, 4]\n"
      Heddle.run do
        register.call(Fiber.scheduler)
        spawned = Array.new(2) { meter.collect && meter.value("heddle.fibers.spawned") }
        3.times { Fiber.schedule { nil } }
        sleep(0.06) # at least: the scheduler's numbers serve for 0.05 s
        meter.collect
        p [*spawned, meter.value("heddle.fibers.spawned")]
      end
    RUBY
  end

  it "observes percentiles of the histograms that stats: :detailed makes" do
    expect(printed(<<~RUBY)).to eq "true\n"
      Heddle.run(stats: :detailed) do
        20.times { sleep(0) }
        register.call(Fiber.scheduler)
        meter.collect
        p meter.value("heddle.run_queue.slice_duration.p50").positive?
      end
    RUBY
  end

  it "observes nothing of the histograms, nor by name, otherwise" do
    expect(printed(<<~RUBY)).to eq "[nil, 0, {}, {}]\n"
      Heddle.run do
        register.call(Fiber.scheduler)
        Heddle.await(Heddle.spin(name: "GET /x") { nil })
        meter.collect
        p [meter.value("heddle.run_queue.slice_duration.p99"), meter.value("heddle.names"),
           meter.values("heddle.name.ran"), meter.values("heddle.name.age")]
      end
    RUBY
  end

  it "records the age and the times of the fibers of each name, once" do
    expect(printed(<<~RUBY)).to eq <<~TEXT
      Heddle.run(stats: :detailed) do
        register.call(Fiber.scheduler)
        2.times do |number|
          Heddle.await(Heddle.spin(name: "GET /orders/\#{number}") { sleep 0.001 }) # at least
          meter.collect
        end
        of = { "name" => "GET /orders/:id" }
        ages = meter.values("heddle.name.age")
        p ages.keys == [of], ages[of].size, ages[of].all? { |age| age > 0.001 * 0.9 }
        p meter.values("heddle.name.ran").keys == [of], meter.values("heddle.name.runnable").keys == [of]
        waited = meter.values("heddle.name.waited")
        p waited.keys == [{ **of, "kind" => "sleep" }], waited.values.all?(&:positive?)
      end
    RUBY
      true
      2
      true
      true
      true
      true
      true
    TEXT
  end

  it "gives a hundred names at most to OpenTelemetry, and counts all others as one" do
    expect(printed(<<~RUBY)).to eq "[101, 50, 150]\n"
      Heddle.run(stats: :detailed) do
        register.call(Fiber.scheduler)
        150.times do |number|
          Heddle.await(Heddle.spin(name: "job \#{("a".."zz").to_a[number]}") { nil })
          meter.collect if (number % 10).zero?
        end
        meter.collect
        ages = meter.values("heddle.name.age")
        p [ages.size, ages[{ "name" => "other" }].size, ages.values.sum(&:size)]
      end
    RUBY
  end

  it "gives each instrument a name, a unit and a description that OpenTelemetry accepts" do
    expect(printed(<<~RUBY)).to eq "true\n"
      register.call(Heddle::Scheduler.new)
      p(meter.instruments.all? do |name, instrument|
        name.match?(%r{\\A[a-zA-Z][-./\\w]{0,254}\\z}) && %w[s 1].include?(instrument.options[:unit]) &&
          !instrument.options[:description].empty?
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

  it "observes nothing after unsubscribe" do
    expect(printed(<<~RUBY)).to eq "[0, nil, nil, nil, true]\n"
      subscription = register.call(Heddle::Scheduler.new)
      meter.collect
      before = meter.value("heddle.timers.pending")
      elapsed = meter.value("heddle.elapsed")
      subscription.unsubscribe
      meter.collect
      p [before, meter.value("heddle.timers.pending"), meter.value("heddle.run_queue.slice_duration.p50"),
         meter.value("heddle.names"), meter.value("heddle.elapsed") == elapsed]
    RUBY
  end
end
