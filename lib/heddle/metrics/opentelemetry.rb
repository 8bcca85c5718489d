# frozen_string_literal: true

require "opentelemetry-metrics-api"
require_relative "../../heddle"
require_relative "catalogue"
require_relative "growth"
require_relative "source"

module Heddle
  module Metrics
    # Hands {Scheduler#stats} to the gem opentelemetry-metrics-api, as instruments that get their values when its reader
    # collects. `require "heddle/metrics/opentelemetry"` loads it.
    #
    # Counters are named as `heddle.fibers.spawned`, durations as `heddle.kernel.park_duration`. Of each histogram there
    # are the gauges `.p50`, `.p99` and `.max`, for the time since the scheduler was made. These have values only with
    # `stats: :detailed`, and so have those by name: the histogram `heddle.name.age`, and the counters
    # `heddle.name.ran`, `heddle.name.runnable` and `heddle.name.waited`, all in seconds. Their attribute `name` has at
    # most 100 values, and `other`; the last one also has the attribute `kind`.
    #
    # An observable instrument of this gem has one value, and one set of attributes. Its SDK also adds up the values of
    # an observable counter, each of which is a total. So the callback of an observable gauge, which is created first,
    # gives all other counters, and the histogram, what was added since the last collection.
    module OpenTelemetry
      PARTS = %i[p50 p99 max].freeze
      BY_NAME = {
        "heddle.name.ran" => "Seconds that fibers with a name ran",
        "heddle.name.runnable" => "Seconds that fibers with a name waited for their turn",
        "heddle.name.waited" => "Seconds that fibers with a name waited for events, by kind"
      }.freeze
      AGE = "heddle.name.age"
      # How many values of the histogram are recorded until other threads run.
      RECORDS_PER_TURN = 200
      # Seconds: the last bucket has no end.
      LONGEST = 3600.0
      private_constant :PARTS, :BY_NAME, :AGE, :RECORDS_PER_TURN, :LONGEST

      # Creates the instruments for a scheduler.
      #
      # @param scheduler [Scheduler] its `stats` are also read when it is closed
      # @param meter [#create_counter] an `OpenTelemetry::Metrics::Meter`, with which no scheduler has been registered
      # @return [Subscription] after its `unsubscribe` the instruments get no values. OpenTelemetry cannot remove them.
      # @raise [TypeError] if it is no {Scheduler}
      # @example
      #   meter = OpenTelemetry.meter_provider.meter("jobs")
      #   Heddle::Metrics::OpenTelemetry.register(Fiber.scheduler, meter:)
      def self.register(scheduler, meter: ::OpenTelemetry.meter_provider.meter("heddle", version: VERSION))
        source = Source.new(scheduler)
        counters = {}
        growth = Growth.new
        callback = proc do
          next unless source.stats

          record(*growth.take(totals(source), source.names), counters)
          source.names.size
        end
        meter.create_observable_gauge("heddle.names", callback:, unit: "1",
                                                      description: "Names whose fibers are counted")
        create(meter, source, counters)
        Subscription.new { source.detach }
      end

      def self.create(meter, source, counters)
        CATALOGUE.each do |metric|
          case metric.kind
          when :counter then counters[name_of(metric)] = meter.create_counter(name_of(metric), **about(metric))
          when :gauge then observe(meter, metric, source)
          when :histogram then PARTS.each { |part| observe(meter, metric, source, part) }
          end
        end
        BY_NAME.each { |name, text| counters[name] = meter.create_counter(name, description: text, unit: "s") }
        counters[AGE] = meter.create_histogram(AGE, description: "Seconds that fibers had a name", unit: "s")
      end

      def self.about(metric)
        { description: metric.description, unit: metric.seconds? || metric.path == %i[elapsed] ? "s" : "1" }
      end

      def self.observe(meter, metric, source, part = nil)
        callback = proc do
          value = source.stats&.then { |stats| metric.of(stats) }
          part ? value&.public_send(part) : value
        end
        options = about(metric)
        options[:description] += ": #{part}" if part
        meter.create_observable_gauge([name_of(metric), part].compact.join("."), callback:, **options)
      end

      # @return [Hash{String => Numeric}] the counters that are of no name
      def self.totals(source)
        CATALOGUE.select { |metric| metric.kind == :counter }.to_h do |metric|
          [name_of(metric), metric.of(source.stats)]
        end
      end

      def self.record(counted, names, counters)
        counted.each { |name, value| counters.fetch(name).add(value, attributes: {}) }
        names.each do |total|
          attributes = { "name" => total.name }
          counters["heddle.name.ran"].add(total.ran, attributes:)
          counters["heddle.name.runnable"].add(total.runnable, attributes:)
          total.waited.each do |kind, seconds|
            counters["heddle.name.waited"].add(seconds, attributes: { **attributes, "kind" => kind.to_s })
          end
          total.ages.buckets.each { |bound, count| record_ages(counters[AGE], bound, count, attributes) }
        end
      end

      # A bucket's value stands for all that are in it. The bucket begins at four fifths of its end, or later.
      def self.record_ages(histogram, bound, count, attributes)
        value = [bound * 0.9, LONGEST].min
        count.times do |number|
          Thread.pass if (number % RECORDS_PER_TURN) == RECORDS_PER_TURN - 1
          histogram.record(value, attributes:)
        end
      end

      def self.name_of(metric)
        "heddle.#{metric.path.join(".").delete_suffix("_count")}"
      end
      private_class_method :create, :about, :observe, :totals, :record, :record_ages, :name_of
    end
  end
end
