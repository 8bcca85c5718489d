# frozen_string_literal: true

require "prometheus/client"
require_relative "../../heddle"
require_relative "catalogue"
require_relative "source"

module Heddle
  module Metrics
    # Hands {Scheduler#stats} to the gem prometheus-client (4), whose exporter and pusher then write it.
    # `require "heddle/metrics/prometheus"` loads it.
    #
    # Counters are named as `heddle_fibers_spawned_total`, durations as `heddle_kernel_park_seconds_total`. The
    # histograms `heddle_run_queue_scheduled_seconds` and `heddle_run_queue_slice_seconds` have values only with
    # `stats: :detailed`, and so have those by name: the histogram `heddle_name_age_seconds`, and the counters
    # `heddle_name_ran_seconds_total`, `heddle_name_runnable_seconds_total` and `heddle_name_waited_seconds_total`.
    # Their label `name` has at most 100 values at a time, and `other`; the last one also has the label `kind`.
    module Prometheus
      # The bounds of the buckets: from 1 µs to 17 s, each twice the one before.
      BOUNDS = (10..34).map { |exponent| (1 << exponent) / 1e9 }.freeze
      OWN_LABELS = %i[name kind].freeze
      private_constant :BOUNDS, :OWN_LABELS

      # Registers a scheduler. Its numbers are read when Prometheus asks for them.
      #
      # @param scheduler [Scheduler] its `stats` are also read when it is closed
      # @param registry [#register, #get] a `Prometheus::Client::Registry`
      # @param labels [Hash{Symbol => String}] labels for all of its metrics: several schedulers in one registry need
      #   different ones
      # @return [Subscription] its `unsubscribe` removes the scheduler's numbers. The metrics stay in the registry.
      # @raise [TypeError] if it is no {Scheduler}, or the labels are no Hash
      # @raise [ArgumentError] if a scheduler with these labels is registered, or a label is Heddle's own: name, kind
      # @raise [::Prometheus::Client::Registry::AlreadyRegisteredError] if other code has registered such a name
      # @example In config/puma.rb, for the scheduler of each worker
      #   plugin :heddle
      #   before_thread_start { Heddle::Metrics::Prometheus.register(Fiber.scheduler) }
      def self.register(scheduler, registry: ::Prometheus::Client.registry, labels: {})
        source = Source.new(scheduler)
        check(labels)
        added = []
        CATALOGUE.each do |metric|
          name = name_of(metric)
          sampled = registry.get(name)
          sampled = registry.register(Sampled.new(metric, name)) unless sampled.is_a?(Sampled)
          sampled.add(source, labels)
          added << sampled
        end
        Subscription.new { added.each { |sampled| sampled.remove(source) } }
      rescue StandardError
        # None of the numbers is there twice, or alone.
        added&.each { |sampled| sampled.remove(source) }
        raise
      end

      # The labels of the metrics by name would replace them.
      def self.check(labels)
        unless labels.is_a?(Hash)
          raise TypeError, "Heddle::Metrics::Prometheus.register: labels: must be a Hash, not #{labels.inspect}"
        end

        own = labels.keys.map(&:to_sym) & OWN_LABELS
        return if own.empty?

        raise ArgumentError, "Heddle::Metrics::Prometheus.register: the label #{own.first} is Heddle's own: give " \
                             "yours another name"
      end

      def self.name_of(metric)
        name = "heddle_#{metric.path.join("_")}".delete_suffix("_count").delete_suffix("_duration")
        name = "#{name}_seconds" if metric.seconds?
        (metric.kind == :counter ? "#{name}_total" : name).to_sym
      end
      private_class_method :check, :name_of

      # What a registry holds: it has the methods of a `Prometheus::Client::Metric` that the formats call.
      #
      # @api private
      class Sampled
        # @return [Symbol]
        attr_reader :name

        def initialize(metric, name)
          @metric = metric
          @name = name
          @sources = {}
        end

        def add(source, labels)
          if @sources.key?(labels)
            raise ArgumentError, "a scheduler is registered with labels #{labels.inspect} already: give each its own"
          end

          @sources = @sources.merge(labels.dup.freeze => source)
        end

        def remove(source)
          @sources = @sources.reject { |_, other| other.equal?(source) }
        end

        # @return [:counter, :gauge, :histogram]
        def type = @metric.kind

        # @return [String]
        def docstring = @metric.description

        # @return [Hash{Hash => Integer, Float, Hash}] the values by labels
        def values
          pairs = @sources.flat_map do |labels, source|
            source.values(@metric).map { |own, value| [labels.merge(own), value] }
          end
          pairs.to_h { |labels, value| [labels, type == :histogram ? cumulative(value) : value] }
        end

        # @return [Integer, Float, Hash, nil]
        def get(labels: {}) = values[labels]

        private

        def cumulative(histogram)
          counts = BOUNDS.to_h { |bound| [bound.to_s, histogram.buckets.sum { |end_, n| end_ <= bound ? n : 0 }] }
          counts.merge("+Inf" => histogram.count, "sum" => histogram.sum)
        end
      end
      private_constant :Sampled
    end
  end
end
