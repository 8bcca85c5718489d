# frozen_string_literal: true

module Heddle
  # What the fibers of all schedulers of this process have spent their time on in the last minutes, by name. At most
  # 100 names of each scheduler are told apart; all others are one. Numbers, UUIDs and long hexadecimal numbers in a
  # path become `:id`, and after a job's class they are left out.
  #
  # Schedulers count totals. The report keeps those of the last minutes in which it was asked, one reading for each span
  # of ten seconds. Before the first one, its window is all that was counted.
  #
  # @api private
  class NameReport
    # Seconds: the default, and the highest value, of `window:`.
    WINDOW = 60
    LONGEST = 300
    # Seconds: one reading is kept in each span.
    SPAN = 10
    # Seconds: a shorter span that has ended is left out.
    MOMENT = 0.1
    REQUEST = %r{\A[A-Z]+ /}
    JOB = /\A(?:[A-Z]\w*::)*[A-Z]\w*\z/
    private_constant :WINDOW, :LONGEST, :SPAN, :MOMENT, :REQUEST, :JOB

    def initialize
      @readings = [].freeze
    end

    # Any thread may call this.
    #
    # @param window [Numeric] seconds
    # @return [Hash{Symbol => Object}] frozen; `seconds` says of how long it tells, which is up to a span more than the
    #   window, or more if no report was taken for a while
    def take(window: WINDOW)
      window = ArgumentChecks.seconds(window, "the window").clamp(0, LONGEST).to_f
      now = NameReading.new
      readings = keep(now)
      earlier = readings - [now]
      before = earlier.reverse_each.find { |reading| now.at - reading.at >= window } || earlier.first
      seconds = now.seconds_since(before)
      { window:, seconds:, names: names(now.since(before), seconds), history: history(readings, now),
        late: now.late.map { |fiber| late(*fiber) } }.freeze
    end

    private

    # Without a lock: of readings that are taken at the same time, one is kept.
    #
    # @return [Array<NameReading>] those that are kept, also `now` if it is
    def keep(now)
      oldest = now.at - LONGEST - SPAN
      readings = @readings.select { |reading| reading.at.between?(oldest, now.at) }
      is_first = readings.empty? || number(readings.last.at) < number(now.at)
      is_first ? @readings = [*readings, now].freeze : readings
    end

    def number(time) = (time / SPAN).floor

    def names(totals, seconds)
      totals.sort_by { |total| -total.seconds }.map { |total| full_row(total, seconds) }
    end

    def full_row(total, seconds)
      ages = total.ages + total.present
      { **row(total, seconds), running: total.present.count, p50: ages.p50, p99: ages.p99, max: ages.max,
                               waited: Accounting.sorted(total.waited), preemptions: total.preemptions }.freeze
    end

    def row(total, seconds)
      total => { name:, ran:, runnable: }
      finished = total.ages.count
      { name:, kind: kind(name), finished:, per_second: seconds.positive? ? finished / seconds : 0.0,
        ran:, runnable:, waited: total.waited_in_all }.freeze
    end

    # @return [:request, :job, :heddle, :unnamed, :other]
    def kind(name)
      case name
      when nil then :unnamed
      when REQUEST then :request
      when JOB then :job
      else Names.own?(name) ? :heddle : :other
      end
    end

    def history(readings, now)
      # Nothing is left of a span if the counting began with the next one.
      finished = readings.each_cons(2).map { |before, after| before.span ||= span(before, after) }
                         .select { |_, seconds| seconds > MOMENT }
      [*finished, span(readings.last, now)].filter_map { |span| describe(now, *span) }
    end

    # Wall clocks step, so a span has a number and an age besides.
    def describe(now, number, seconds, names)
      ago = now.at - (number * SPAN)
      { number:, ago:, at: Time.now.to_f - ago, seconds:, names: }.freeze if names.any? && ago < LONGEST
    end

    # It begins with the first reading, or with the counting.
    def span(before, after)
      seconds = after.seconds_since(before)
      [number(after.at - seconds), seconds, after.since(before).map { |total| row(total, seconds) }].freeze
    end

    def late(ago, name, waited, causes)
      ran_meanwhile = causes.map { |cause, ran| { name: cause, ran: }.freeze }
      { at: Time.now.to_f - ago, name:, waited:, ran_meanwhile: }.freeze
    end
  end
  private_constant :NameReport
end
