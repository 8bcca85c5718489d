# frozen_string_literal: true

module Heddle
  # Runs Puma's requests on fibers. `plugin :heddle` in `config/puma.rb` loads it.
  module PumaSupport
    # What the configuration file says about Heddle: see {DSL#heddle}.
    #
    # @api private
    class Settings
      FIBERS = 512
      FIBERS_RANGE = 1..1_000_000
      # The signals that some process of Puma handles. Puma sets its handlers after it has read the configuration, and
      # again in each worker, so asking for them here would find none.
      SIGNALS = %w[CHLD HUP INFO INT PWR TERM TTIN TTOU URG USR1 USR2].freeze
      # The scheduler's default.
      SIGNAL = "USR2"
      private_constant :FIBERS, :FIBERS_RANGE, :SIGNALS, :SIGNAL

      # @return [Boolean] whether the environment variable `HEDDLE` turns the plugin off
      # @raise [ArgumentError] if it is neither `on` nor `off`, nor empty
      def self.off?
        case (value = ENV.fetch("HEDDLE", ""))
        when "", "on" then false
        when "off" then true
        else raise ArgumentError, "HEDDLE=#{value}: must be on or off"
        end
      end

      # @return [Integer] how many requests are handled at a time
      attr_reader :fibers

      # @return [Numeric, nil] seconds: a request that takes longer is logged
      attr_reader :slow

      # @return [:own, :shared] whether each request has thread variables of its own
      attr_reader :thread_variables

      # @param fibers [Integer]
      # @param slow [Numeric, nil] see {DSL#heddle}
      # @param thread_variables [:own, :shared] see {DSL#heddle}
      # @param scheduler_options [Hash] see {Heddle::Scheduler#initialize}
      # @raise [ArgumentError, TypeError] for invalid values, when the configuration is read
      def initialize(fibers: FIBERS, slow: nil, thread_variables: :own, **scheduler_options)
        @fibers = ArgumentChecks.count(fibers, "heddle fibers", FIBERS_RANGE)
        @slow = slow && ArgumentChecks.seconds(slow, "heddle slow")
        @thread_variables = UnitOfWork.check_option(thread_variables, "heddle")
        @given = scheduler_options.freeze
        # Without detailed counts the log could not tell where the time went.
        defaults = slow ? { preempt: :all, stats: :detailed } : { preempt: :all }
        @scheduler_options = { **defaults, **@given }.freeze
        QueueOrigins.note_from_now_on if @scheduler_options[:stats] == :detailed # before the application is loaded
        # An invalid option fails here, rather than in each worker.
        make_scheduler.close
        refuse_signal_of_puma
        freeze
      end

      # @return [Settings] with other values for some options
      def with(**changes)
        Settings.new(fibers:, slow:, thread_variables:, **@given, **changes)
      end

      # @return [Scheduler]
      def make_scheduler
        Scheduler.new(**@scheduler_options)
      end

      # @return [String]
      def to_s
        options = { slow:, thread_variables: (:shared if thread_variables == :shared) }.compact
        options.update(@scheduler_options)
        ["#{fibers} fibers", *options.map { |name, value| "#{name}: #{value.inspect}" }].join(", ")
      end

      private

      def refuse_signal_of_puma
        return unless @scheduler_options[:ticker] == :signal

        signal = @scheduler_options[:signal] || SIGNAL
        name = (signal.is_a?(Integer) ? Signal.signame(signal) : signal.to_s).delete_prefix("SIG")
        return unless SIGNALS.include?(name)

        raise ArgumentError, "heddle signal: Puma handles #{name} itself, so ticker: :signal needs another one, such " \
                             "as signal: \"ALRM\"; or take ticker: :timerfd, which needs none"
      end
    end
  end
end
