# frozen_string_literal: true

module Heddle
  # A fiber that keeps its thread for longer than `stall_after:`. {Heddle.on_stall} passes it to receivers, once while
  # it lasts and once at its end.
  #
  # @!attribute [r] thread
  #   @return [Thread] the scheduler's thread
  # @!attribute [r] fiber
  #   @return [String, nil] the fiber, as `inspect` shows it, with its name; nil if the stall had ended before Ruby code
  #     could run
  # @!attribute [r] backtrace
  #   @return [Array<String>] where the fiber was, without Heddle's own frames; empty if the stall had ended before
  # @!attribute [r] native_method
  #   @return [String, nil] the method written in C that the thread was in, such as `JSON.generate`
  # @!attribute [r] duration
  #   @return [Float] seconds that the fiber has kept the thread, so far or in the end
  # @!attribute [r] ended
  #   @return [Boolean] whether the stall has ended
  # @!attribute [r] late_fibers
  #   @return [Integer] how many fibers it has delayed, by a millisecond or more; 0 as long as it lasts
  # @!attribute [r] latest_by
  #   @return [Float] seconds by which it has delayed the first of them
  # @!attribute [r] count
  #   @return [Integer] how many stalls there have been at this place, with this one
  Stall = Data.define(:thread, :fiber, :backtrace, :native_method, :duration, :ended, :late_fibers, :latest_by,
                      :count) do
    alias_method :ended?, :ended

    # @return [String, nil] the file and the line: `app/models/report.rb:31`. Stalls at the same place have the same
    #   cause.
    def location = Backtraces.place_in(backtrace.first)

    # @return [String, nil] the innermost place in a file that belongs neither to Ruby nor to a gem, if that is not the
    #   {#location}
    def called_from
      return unless location

      place = Backtraces.place_in(backtrace.find { |line| !line.start_with?(*Stalls.libraries) })
      place unless place == location
    end

    # @return [String] one line
    def to_s
      kept = format(ended ? "kept its thread for %.3f s" : "has kept its thread for %.3f s so far", duration)
      ["#{fiber || "a fiber"} #{kept}: #{place}", caller_place, times, lateness].compact.join(", ")
    end

    private

    def place
      return location ? "at #{location}" : "at an unknown place" unless native_method

      location ? "#{native_method} called at #{location}" : native_method
    end

    def caller_place = ("from #{called_from}" if called_from)

    def times = ("stall number #{count} there" if count > 1)

    def lateness
      return unless ended && late_fibers.positive?

      format("%<fibers>s late, by up to %<seconds>.3f s",
             fibers: late_fibers == 1 ? "1 fiber was" : "#{late_fibers} fibers were", seconds: latest_by)
    end
  end
end
