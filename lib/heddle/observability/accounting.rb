# frozen_string_literal: true

module Heddle # :nodoc:
  # What a fiber has spent its time on. The object is frozen. All durations are in seconds.
  #
  # It is counted with `stats: :detailed`, and while the dashboard of {Heddle::Web} is open.
  #
  # @!attribute [r] seconds
  #   @return [Float] how long it was counted: since the fiber's start, or its naming; or since the counting began, if
  #     that was later
  # @!attribute [r] ran
  #   @return [Float] how long the fiber ran. What a fiber does that it has resumed, such as an Enumerator's, counts as
  #     its own
  # @!attribute [r] runnable
  #   @return [Float] how long it waited for its turn
  # @!attribute [r] waited
  #   @return [Hash{Symbol, String => Float}] how long it waited for what; the longest first. The keys are `:sleep`,
  #     `:block` (a Mutex, a Queue, a Thread), `:io`, `:process`, `:address` (of a host name), `:suspend` (core_ext's
  #     `Fiber#schedule`), `:close` (the end of the other fibers), `:resume` (a fiber that it has resumed), `:raise`,
  #     and the texts of {Heddle.waiting_for}
  # @!attribute [r] preemptions
  #   @return [Integer] how often it was preempted
  FiberTimes = Data.define(:seconds, :ran, :runnable, :waited, :preemptions) do
    # @api private
    # @param values [Array, nil] what the extension has counted
    # @return [FiberTimes, nil]
    def self.of(values)
      return unless values

      seconds, ran, runnable, waited, preemptions = values
      new(seconds:, ran:, runnable:, waited: Accounting.sorted(waited), preemptions:)
    end

    # @return [String] in one line, without what is too short to matter
    # @example
    #   Heddle.fibers.first.times.to_s # => "ran 58.2 s of its 61.0 s, waited 2.8 s (io 2.7 s, sleep 0.1 s)"
    def to_s
      text = "ran #{Accounting.seconds(ran)} of its #{Accounting.seconds(seconds)}"
      text << ", waited #{Accounting.seconds(runnable)} for its turn" if Accounting.matters?(runnable)
      total = waited.sum { |_, time| time }
      text << ", waited #{Accounting.seconds(total)} (#{Accounting.list(waited)})" if Accounting.matters?(total)
      text << ", preempted #{preemptions == 1 ? "once" : "#{preemptions} times"}" if preemptions.positive?
      text
    end
  end

  # Decides when it is counted what fibers spend their time on. The extension counts.
  #
  # @api private
  module Accounting
    # Seconds: what is shorter is left out of texts.
    MATTERS = 0.001
    # How many waits a text names.
    NAMED = 3
    private_constant :MATTERS, :NAMED

    @begun = false

    class << self
      # The extension calls this for a scheduler with `stats: :detailed`. Every Ractor may ask {begun?}.
      def begin
        QueueOrigins.note_from_now_on
        @begun = true
      end

      # @return [Boolean] whether any scheduler counts, or has counted
      def begun? = @begun

      # Counts in all open schedulers of this process, for some seconds from now on at least. Any thread may call this.
      # It is for pages that are looked at for a while, so it changes no class: most Queues have been made by then.
      #
      # @param seconds [Numeric]
      # @return [void]
      def run_for(seconds)
        @begun = true
        Native.count_times(Float(seconds))
      end

      # @param waited [Hash]
      # @return [Hash] frozen, the longest first
      def sorted(waited) = waited.sort_by { |_, time| -time }.to_h.freeze

      # @return [Boolean]
      def matters?(seconds) = seconds >= MATTERS

      # @return [String] `58.2 s`
      def seconds(seconds) = seconds < 0.1 ? "#{format("%.1f", seconds * 1000)} ms" : "#{format("%.1f", seconds)} s"

      # @param waited [Hash] the longest first
      # @return [String] `io 2.7 s, sleep 0.1 s`
      def list(waited)
        named = waited.first(NAMED).select { |_, time| matters?(time) }
        named.map { |subject, time| "#{subject} #{seconds(time)}" }.join(", ")
      end
    end
  end
  private_constant :Accounting
end
