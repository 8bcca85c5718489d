# frozen_string_literal: true

module RuboCop
  module Cop
    # Refuses what makes an example depend on when a thread or process gets a CPU.
    #
    # Where the subject is real time, the example has the tag `:timed`; where it is the order or the effect of timers,
    # the clock is virtual. Programs of an example are text, so these cops read lines; the syntax tree tells where the
    # clock is virtual.
    module RealTime
      # Seconds from which on a limit does not expire, and a sleep does not end, while an example runs.
      LONG = 20
      # Seconds up to which a limit is there to expire: nothing has so little time to be done. `rake disturbed`
      # stalls threads often enough to find out if something has.
      SHORT = 0.1

      # Asks the cop for each line what it says against it, but not where the clock is virtual or the example timed.
      module Lines
        VIRTUAL = /clock: :virtual|virtual: true|\bvirtually\b|Testing\.run\b/
        TIMED = /, :timed\b|timed: true/

        def on_new_investigation
          return unless processed_source.ast

          excused = excused_lines
          processed_source.lines.each.with_index(1) do |line, number|
            next if excused.include?(number) || line.lstrip.start_with?("#")

            message = objection(line)
            add_offense(processed_source.buffer.line_range(number), message:) if message
          end
        end

        private

        def excused_lines
          blocks = processed_source.ast.each_node(:block, :numblock).select { |block| excused?(block) }
          programs = processed_source.ast.each_node(:str, :dstr).select(&:heredoc?).map { |text| text.loc.heredoc_body }
          ranges = blocks.map(&:source_range) + programs.select { |program| program.source.match?(VIRTUAL) }
          ranges.flat_map { |range| (range.first_line..range.last_line).to_a }.to_set
        end

        def excused?(block)
          head = block.send_node.source
          head.match?(VIRTUAL) || head.match?(TIMED) || virtual_helpers.include?(block.method_name)
        end

        # The methods of this file that run their block with a virtual clock.
        def virtual_helpers
          @virtual_helpers ||= processed_source.ast.each_node(:def, :block).filter_map do |node|
            next unless node.source.match?(VIRTUAL)

            node.def_type? ? node.method_name : defined_method(node.send_node)
          end
        end

        def defined_method(call)
          call.first_argument.value if %i[define_method let].include?(call.method_name)
        end
      end

      # A sleep that ends lets others run for as long as it happens to take.
      class Sleep < Base
        include Lines

        CALL = /\bsleep[ (]\(?(\d[\d_.]*)/
        # An event ends it; or a comment says that the example expects the sleep to take at least its time.
        FINE = /\bsleep\b.*\b(?:until|while)\b|# at least\b/
        MESSAGE = "Wait for an event, or take a virtual clock. `a_moment` is a wait of any length, `sleep` one that " \
                  "does not end. If a sleep must take its time, say `# at least`."

        private

        def objection(line)
          duration = line[CALL, 1]&.to_f
          MESSAGE if duration&.positive? && duration < LONG && !line.match?(FINE)
        end
      end

      # A limit must expire at once, or not at all.
      class Limit < Base
        include Lines

        CALL = /\b(?:\w*timeout:\ |grace:\ |within:\ |join\(|timeout\(|move_on_after\(|deadline\(|wait_readable\(|
                  wait_writable\(|IO\.select\(.*,\ )(\d[\d_.]*)/x
        MESSAGE = "Whether it expires depends on the machine. A limit that must not expire has at least #{LONG} s, " \
                  "one that must, at most #{SHORT} s.".freeze

        private

        def objection(line)
          limit = line[CALL, 1]&.delete("_")&.to_f
          MESSAGE if limit && limit > SHORT && limit < LONG
        end
      end

      # How long something takes at most, or how much is done in a time, depends on the machine.
      class Measure < Base
        include Lines

        CLOCK = /\bseconds\b|\btook\b|\belapsed\b|Clock\.(?:now|cpu)|clock_gettime|Time\.now/
        MOST = /\bbe <=? *(\d[\d_.]*)|be_within\(([\d.]+)\)|be_between\(([\d_.]+)|(?<!class) <=? (\d[\d_.]*)/
        RATE = %r{/ *(?:seconds|took|elapsed|\(?Clock\.)}
        MESSAGE = "It depends on the machine. Compare with a least time, or measure it where an example is `:timed`."

        private

        def objection(line)
          MESSAGE if line.match?(CLOCK) && (line.match?(RATE) || bounded?(line))
        end

        def bounded?(line)
          most = MOST.match(line)&.captures&.compact
          most && most.first.to_f.positive? && most.first.to_f < LONG
        end
      end
    end
  end
end
