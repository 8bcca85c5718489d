# frozen_string_literal: true

module Heddle # :nodoc:
  # The text of {Heddle.dump}.
  class DumpText
    INDENT = "  "
    # Deeper fibers are indented as much as this, or a chain of many fibers would fill the memory with spaces.
    DEEPEST = 20
    private_constant :INDENT, :DEEPEST

    def initialize
      @sections = Snapshots.take
      description = WaitDescription.new(@sections)
      @infos = FiberInfos.of(@sections, description)
      @deadlocks = Deadlocks.new(@sections, description)
    end

    # @return [String]
    def to_s
      text = "Process #{Process.pid} at #{Time.now}. Schedulers: #{@sections.size}. Fibers: #{@infos.sum(&:size)}.\n"
      @sections.zip(@infos) { |section, infos| add_section(text, section, infos) }
      text
    end

    private

    def add_section(text, section, infos)
      text << "\n"
      add_line(text, "", "#{section.scheduler.inspect} of #{section.thread&.inspect || "no thread yet"}")
      @deadlocks.report(section).each { |line| add_line(text, INDENT, line) }
      blocks = section.fibers.to_h { |entry| [entry.fiber.object_id, entry.program_block] }
      RareCollections.each(Snapshots.each_in_tree(infos, Snapshots.parents(section.fibers))) do |info, depth|
        add_fiber(text, info, blocks[info.id], depth)
      end
    end

    def add_fiber(text, info, block, depth)
      indent = INDENT * [depth + 1, DEEPEST].min
      add_line(text, indent, info.to_s)
      times = info.named_times || info.times
      add_line(text, indent + INDENT, times.to_s) if times
      lines = info.backtrace
      lines = [*Backtraces.place(block)] if lines.empty?
      lines.each { |line| add_line(text, indent + INDENT + INDENT, line) }
    end

    def add_line(text, indent, line)
      text << indent << Text.clean(line) << "\n"
    end
  end
  private_constant :DumpText

  class << self
    # Writes all schedulers of this process, each with its thread, and all of their fibers: each fiber's id, name and
    # state, for how long it has been in that state, what it waits for, what it has spent its time on (if that is
    # counted), and its backtrace without Heddle's frames.
    # Children come after their parents, indented. If all fibers of a scheduler wait and nothing can wake them, a line
    # says so, and names the fibers that wait for each other in a circle.
    #
    # Any thread may call this, in a fiber or outside, also a trap handler, irb and a debugger. The text is written by
    # one call of `io.write`, when it is complete.
    #
    # @param io [#write]
    # @return [nil]
    # @raise [TypeError] if `io` has no method `write`
    # @raise what `io.write` raises
    # @example
    #   Heddle.run do
    #     Fiber.schedule { Heddle.annotate("clock") { sleep 5 } }
    #     Heddle.dump
    #   end
    # @see Heddle.fibers
    def dump(io = $stderr)
      raise TypeError, "Heddle.dump: #{io.inspect} has no method write, as $stderr has" unless io.respond_to?(:write)

      io.write(DumpText.new.to_s)
      nil
    end
  end
end
