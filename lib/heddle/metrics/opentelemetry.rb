# frozen_string_literal: true

require "opentelemetry-metrics-api"
require_relative "../../heddle"
require_relative "catalogue"
require_relative "source"

module Heddle
  module Metrics
    # Hands {Scheduler#stats} to the gem opentelemetry-metrics-api, as instruments that are observed when its reader
    # collects. `require "heddle/metrics/opentelemetry"` loads it.
    #
    # Counters are named as `heddle.fibers.spawned`, durations as `heddle.kernel.park_duration`. OpenTelemetry has no
    # observable histogram: of each histogram there are the gauges `.p50`, `.p99` and `.max`, for the time since the
    # scheduler was made, and these have values only with `stats: :detailed`.
    module OpenTelemetry
      PARTS = %i[p50 p99 max].freeze
      private_constant :PARTS

      # Creates the instruments for a scheduler.
      #
      # @param scheduler [Scheduler] its `stats` are also read when it is closed
      # @param meter [#create_observable_counter] an `OpenTelemetry::Metrics::Meter`, with which no scheduler has been
      #   registered
      # @return [void]
      # @raise [TypeError] if it is no {Scheduler}
      # @example
      #   meter = OpenTelemetry.meter_provider.meter("jobs")
      #   Heddle::Metrics::OpenTelemetry.register(Fiber.scheduler, meter:)
      def self.register(scheduler, meter: ::OpenTelemetry.meter_provider.meter("heddle", version: VERSION))
        source = Source.new(scheduler)
        CATALOGUE.each do |metric|
          metric.kind == :histogram ? observe_parts(meter, metric, source) : observe(meter, metric, source)
        end
      end

      def self.observe(meter, metric, source)
        options = { description: metric.description, unit: metric.seconds? || metric.path == %i[elapsed] ? "s" : "1" }
        callback = proc { metric.of(source.stats) }
        case metric.kind
        when :counter then meter.create_observable_counter(name_of(metric), callback:, **options)
        when :gauge then meter.create_observable_up_down_counter(name_of(metric), callback:, **options)
        end
      end

      def self.observe_parts(meter, metric, source)
        PARTS.each do |part|
          callback = proc { metric.of(source.stats)&.public_send(part) }
          description = "#{metric.description}: #{part}"
          meter.create_observable_gauge("#{name_of(metric)}.#{part}", callback:, description:, unit: "s")
        end
      end

      def self.name_of(metric)
        "heddle.#{metric.path.join(".").delete_suffix("_count")}"
      end
      private_class_method :observe, :observe_parts, :name_of
    end
  end
end
