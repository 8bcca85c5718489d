# frozen_string_literal: true

module Heddle
  # What the fibers of all schedulers of this process have spent their time on in the last minutes, by name. At most 100
  # names of each scheduler are told apart; all others are one. Numbers, UUIDs and long hexadecimal numbers in a path
  # become `:id`, and after a job's class they are left out.
  #
  # @api private
  module NameReport
    # Seconds: the default, and the highest value, of `window:`.
    WINDOW = 60
    LONGEST = 300
    # The length of a span in `history`, in seconds.
    SPAN = 10.0
    OTHER = "other"
    REQUEST = %r{\A[A-Z]+ /}
    JOB = /\A(?:[A-Z]\w*::)*[A-Z]\w*\z/
    OWN = "heddle: "
    # What the extension tells of a name.
    COLUMNS = %i[name running finished p50 p99 max ran runnable waited preemptions].freeze
    private_constant :COLUMNS, :WINDOW, :LONGEST, :SPAN, :OTHER, :REQUEST, :JOB, :OWN

    class << self
      # @param window [Numeric] seconds
      # @return [Hash{Symbol => Object}] frozen; see `docs/internals/accounting.md`
      def take(window: WINDOW)
        window = ArgumentChecks.seconds(window, "the window").clamp(0, LONGEST).to_f
        seconds, rows, spans, late = Native.name_report(window)
        now = Time.now.to_f
        { window:, seconds:, names: names(rows, seconds), history: spans.map { |span| span(now, *span) },
          late: late.map { |fiber| late(now, *fiber) } }.freeze
      end

      # @param name [String, Symbol, nil] as the extension returns it
      # @return [:request, :job, :heddle, :unnamed, :other]
      def kind(name)
        case name
        when nil then :unnamed
        when REQUEST then :request
        when JOB then :job
        else text(name).start_with?(OWN) ? :heddle : :other
        end
      end

      # @param name [String, Symbol, nil] as the extension returns it
      # @return [String, nil]
      def text(name) = name.is_a?(Symbol) ? OTHER : name

      private

      def names(rows, seconds)
        rows.map { |values| row(COLUMNS.zip(values).to_h, seconds) }
            .sort_by { |row| -(row[:ran] + row[:runnable] + row[:waited].sum(&:last)) }
      end

      def row(values, seconds)
        values => { name:, finished:, waited: }
        values.merge(name: text(name), kind: kind(name), per_second: seconds.positive? ? finished / seconds : 0.0,
                     waited: Accounting.sorted(waited)).freeze
      end

      # Wall clocks step, so a span has a number and an age besides.
      def span(now, number, ago, parts)
        names = parts.to_h do |name, finished, ran, runnable, waited|
          [text(name), { finished:, ran:, runnable:, waited: }.freeze]
        end
        { number:, ago:, at: now - ago, seconds: [ago, SPAN].min, names: }.freeze
      end

      def late(now, ago, name, waited, causes)
        { at: now - ago, name: text(name), waited:,
          ran_meanwhile: causes.map { |cause, ran| { name: text(cause), ran: }.freeze } }.freeze
      end
    end
  end
  private_constant :NameReport
end
