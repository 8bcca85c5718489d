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
      # How many values of the histogram are recorded until other threads run.
      RECORDS_PER_TURN = 200
      # Seconds: the last bucket has no end.
      LONGEST = 3600.0
      private_constant :PARTS, :RECORDS_PER_TURN, :LONGEST

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
        instruments = {}
        growth = Growth.new
        callback = proc do
          next unless (stats = source.stats)

          names = source.names
          totals = instruments.keys.reject(&:by_name?).to_h { |metric| [metric, metric.of(stats)] }
          record(*growth.take(totals, names), instruments)
          names.size
        end
        # Before a collection can call the callback.
        CATALOGUE.each { |metric| create(meter, metric, source)&.then { |made| instruments[metric] = made } }
        meter.create_observable_gauge("heddle.names", callback:, unit: "1",
                                                      description: "Names whose fibers are counted")
        Subscription.new { source.detach }
      end

      # @return [#add, #record, nil] nil for what is observed
      def self.create(meter, metric, source)
        name = "heddle.#{metric.path.join(".").delete_suffix("_count")}"
        about = { description: metric.description, unit: metric.seconds? ? "s" : "1" }
        return meter.create_counter(name, **about) if metric.kind == :counter
        return meter.create_histogram(name, **about) if metric.by_name?

        observe(meter, name, metric, about, source)
      end

      def self.observe(meter, name, metric, about, source)
        (metric.kind == :gauge ? [nil] : PARTS).each do |part|
          callback = proc do
            value = metric.of(source.stats)
            part ? value&.public_send(part) : value
          end
          description = [metric.description, part].compact.join(": ")
          meter.create_observable_gauge([name, part].compact.join("."), callback:, **about, description:)
        end
        nil
      end

      def self.record(added, names, instruments)
        added.each { |metric, value| instruments.fetch(metric).add(value, attributes: {}) }
        instruments.each do |metric, instrument|
          next unless metric.by_name?

          metric.of_names(names).each do |labels, value|
            attributes = labels.transform_keys(&:to_s)
            metric.kind == :counter ? instrument.add(value, attributes:) : record_ages(instrument, value, attributes)
          end
        end
      end

      # A bucket's value stands for all that are in it. The bucket begins at four fifths of its end, or later.
      def self.record_ages(instrument, histogram, attributes)
        histogram.buckets.each do |bound, count|
          value = [bound * 0.9, LONGEST].min
          count.times do |number|
            Thread.pass if (number % RECORDS_PER_TURN) == RECORDS_PER_TURN - 1
            instrument.record(value, attributes:)
          end
        end
      end
      private_class_method :create, :observe, :record, :record_ages
    end
  end
end
