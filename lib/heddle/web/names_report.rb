# frozen_string_literal: true

module Heddle
  class Web
    # Requests and jobs by name, of the last seconds and of the last minutes; what fibers wait for now; and which ran
    # late.
    #
    # @api private
    class NamesReport
      # Seconds for which times are counted after a request: longer than the page waits until its next one.
      COUNTED = 10
      WINDOW = 60
      WINDOWS = 1..300
      # How many waiting fibers are described, the longest waits first. A process may have many thousands.
      DESCRIBED = 500
      # How many groups of them, and late fibers, are sent.
      GROUPS = 12
      LATE = 50
      PAGE = "#{Names::OWN}this page".freeze
      NAMES = NameReport.new
      # What differs among fibers that wait for the same thing: how much of a time limit is left, and which fibers use
      # the thing.
      REST = /, \d+\.\d s left\z/
      DETAILS = / \(.*\)/
      # The number of a fiber that is waited for, before its name.
      NUMBER = /\bfiber \d+ (?=")/
      private_constant :REST, :DETAILS, :NUMBER, :PAGE, :NAMES, :COUNTED, :WINDOW, :WINDOWS, :DESCRIBED, :GROUPS, :LATE

      # @param parameters [Hash{String => String}] the request's: `window`, in seconds, and `only`
      # @param mount [String] where the application is mounted
      # @raise [ArgumentError] for invalid ones
      def initialize(parameters, mount)
        @own_requests = OwnRequests.new(mount)
        @window = Parameters.number(parameters, "window", WINDOWS, WINDOW)
        @filter = FiberFilter.new({ "only" => parameters["only"] }, mount)
      end

      # @return [Array] what the report depends on
      def key = [@window, @filter.key]

      # @return [Hash] what `Heddle::NameReport#take` tells, where the page's own requests are of the kind `heddle`; and
      #   `waits`, groups of the `waiting` fibers, of which the `described` ones have waited longest, the largest group
      #   first
      def to_h
        Accounting.run_for(COUNTED)
        NAMES.take(window: @window) => { window:, seconds:, names:, history:, late: }
        late = late.reject { |each| @own_requests.include?(each[:name]) }.first(LATE)
        { pid: Process.pid, window:, seconds:, names: rows(names), late: late.map { |each| late(each) },
          history: history.map { |span| { **span, names: rows(span[:names]) } }, **waits }
      end

      private

      def waits
        sections = Snapshots.take
        waiting = sections.flat_map(&:fibers).select { |entry| entry.state == :waiting && @filter.match?(entry, nil) }
        described = waiting.max_by(DESCRIBED, &:seconds)
        { waiting: waiting.size, described: described.size,
          waits: groups(described, WaitDescription.new(sections, searches: false)).first(GROUPS) }
      end

      # Fibers that wait for nothing are left out.
      def groups(entries, description)
        texts = entries.filter_map { |entry| (text = description.of(entry)) && [entry, text.sub(REST, "")] }
        groups = texts.group_by { |_, text| text.gsub(DETAILS, "").gsub(NUMBER, "") }.values
        groups.map { |group| group(group) }.sort_by { |group| [-group[:count], -group[:longest]] }
      end

      # @return [Hash{Symbol => Object}] `waiting_for` is the text of the fiber that has waited longest
      def group(group)
        longest, text = group.max_by { |entry, _| entry.seconds }
        { waiting_for: Text.of_name(text), count: group.size, longest: longest.seconds }
      end

      def rows(rows)
        rows.map { |row| @own_requests.include?(row[:name]) ? { **row, kind: :heddle } : row }
      end

      def late(late)
        { **late, ran_meanwhile: late[:ran_meanwhile].map { |other| { **other, name: cause(other[:name]) } } }
      end

      def cause(name) = @own_requests.include?(name) ? PAGE : name
    end
    private_constant :NamesReport
  end
end
