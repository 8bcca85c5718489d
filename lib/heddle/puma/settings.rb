# frozen_string_literal: true

module Heddle
  # Runs Puma's requests on fibers. `plugin :heddle` in `config/puma.rb` loads it.
  module Puma
    # What the configuration file says about Heddle: see {DSL#heddle}.
    #
    # @api private
    class Settings
      FIBERS = 512
      FIBERS_RANGE = 1..1_000_000
      private_constant :FIBERS, :FIBERS_RANGE

      # @param options [#[]] a server's options
      # @return [Settings, nil] nil for a server that Heddle does not run, such as Puma's control server
      def self.of(options)
        options[:heddle]
      end

      # @return [Integer] how many requests are handled at a time
      attr_reader :fibers

      # @param fibers [Integer]
      # @param scheduler_options [Hash] see {Heddle::Scheduler#initialize}
      # @raise [ArgumentError, TypeError] for invalid values, when the configuration is read
      def initialize(fibers: FIBERS, **scheduler_options)
        @fibers = ArgumentChecks.count(fibers, "heddle fibers")
        unless FIBERS_RANGE.cover?(fibers)
          raise ArgumentError, "heddle fibers: must be #{FIBERS_RANGE.min} to #{FIBERS_RANGE.max}, not #{fibers}"
        end

        @scheduler_options = { preempt: :all, **scheduler_options }.freeze
        # An invalid option fails here, rather than in each worker.
        make_scheduler.close
        freeze
      end

      # @return [Settings] with other values for some options
      def with(**changes)
        Settings.new(fibers:, **@scheduler_options, **changes)
      end

      # @return [Scheduler]
      def make_scheduler
        Scheduler.new(**@scheduler_options)
      end

      # @return [String]
      def to_s
        ["#{fibers} fibers", *@scheduler_options.map { |name, value| "#{name}: #{value.inspect}" }].join(", ")
      end
    end
  end
end
