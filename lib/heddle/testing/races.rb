# frozen_string_literal: true

require "monitor"
require_relative "accesses"

module Heddle
  module Testing
    # Finds what fibers of one run use, one of them writing it, while nothing orders them.
    #
    # Each fiber has a vector clock, and so has what orders fibers: a release joins the fiber's clock to that, and an
    # acquisition that one to the fiber's. This is FastTrack, by Flanagan and Freund. Where it is not known which fibers
    # a call orders, it orders all that make such calls, and a fiber that has ended comes before all that begins later:
    # so races stay unseen, and none is told that is none.
    class Races
      SYNCHRONIZING = [Thread::Mutex, Monitor, Thread::Queue, Thread::SizedQueue, Thread::ConditionVariable].freeze
      LOCKS = [Thread::Mutex, Monitor].freeze
      # Methods that give control to another fiber.
      RESUMING = %i[resume transfer raise kill alive?].freeze
      # What waits for no other fiber.
      UNORDERED = %i[kernel_sleep timeout_after].freeze
      CONTAINERS = [Array, Hash, String].freeze
      WRITING = {
        Array => %i[<< push append pop shift unshift prepend insert []= concat replace clear delete delete_at delete_if
                    keep_if fill],
        Hash => %i[[]= store delete delete_if keep_if clear replace update shift default= default_proc= rehash
                   compare_by_identity],
        String => %i[<< concat replace insert []= setbyte clear prepend force_encoding append_as_bytes]
      }.freeze
      # What is called of an object that no other fiber has yet.
      MAKING = %i[initialize initialize_copy initialize_dup initialize_clone].freeze
      BEGINNINGS = %i[c_call call].freeze
      ENDINGS = %i[c_return return].freeze
      RETURNS = %i[return b_return].freeze
      EVENTS = [*BEGINNINGS, :c_return, *RETURNS, :b_call, :line, :raise].freeze
      # All that orders fibers, and of which it is not known whom.
      ANY = Object.new.freeze
      # What a fiber does in a line. `time` and `age` are those of the line's begin: of the run, and of the fiber.
      Use = Data.define(:fiber, :written, :path, :line, :time, :age)
      # The uses of a variable or an object that later ones are compared with.
      Uses = Struct.new(:write, :reads)
      # A method or a block of the program that runs. `line` has begun, and its accesses are noted when it has ended.
      Frame = Struct.new(:type, :place, :line)
      Line = Data.define(:object, :accesses, :use)
      private_constant :SYNCHRONIZING, :LOCKS, :RESUMING, :UNORDERED, :CONTAINERS, :WRITING, :MAKING, :BEGINNINGS,
                       :ENDINGS, :RETURNS, :EVENTS, :ANY, :Use, :Uses, :Frame, :Line

      # While the block runs, what the fibers of this thread use is noticed.
      def self.noticing(&)
        uses = TracePoint.new(*EVENTS) { |point| Run.of_thread&.detector(self)&.pass(point) }
        # With a block it is enabled for this thread only.
        uses.enable { yield } # rubocop:disable Style/ExplicitBlockArgument
      end

      # @return [Race, nil] the first that was found
      attr_reader :error

      # @param files [ProgramFiles]
      def initialize(files)
        @files = files
        @time = 0
        @clocks = {}.compare_by_identity
        @frames = Hash.new { |frames, fiber| frames[fiber] = [] }.compare_by_identity
        @locks = Hash.new { |locks, fiber| locks[fiber] = [] }.compare_by_identity
        @uses = Hash.new { |uses, object| uses[object] = {} }.compare_by_identity
        @accesses = Hash.new { |accesses, path| accesses[path] = Accesses.of(path) }
      end

      # @param point [TracePoint]
      def pass(point)
        fiber = Fiber.current
        # The first is the program's. Of others it is not known what orders them, as of an Enumerator's.
        @clocks[fiber] = clock(fiber) if @clocks.empty?
        return unless @clocks.key?(fiber)

        @time += 1
        type = point.defined_class
        if point.event == :raise
          throw_away(fiber)
        elsif type && orders?(type, point.method_id)
          pass_call(fiber, point, type)
        elsif @files.include?(point.path)
          pass_program(fiber, point)
        end
      end

      private

      def clock(fiber) = { fiber => 1 }.compare_by_identity

      # What orders fibers

      def orders?(type, method)
        return !UNORDERED.include?(method) if type.equal?(Scheduler)

        SYNCHRONIZING.include?(type) || type.equal?(Fiber) || type <= IO || type <= Thread ||
          type.equal?(Native.singleton_class)
      end

      def pass_call(fiber, point, type)
        other = point.self
        case point.event
        when *BEGINNINGS
          return pass_fiber(fiber, other, point.method_id) if type.equal?(Fiber)

          begin_call(fiber, type, other)
        when *ENDINGS
          end_call(fiber, type, other)
        end
      end

      def begin_call(fiber, type, other)
        # As ConditionVariable#wait unlocks one.
        held(fiber).each { |lock| release(fiber, lock) }
        release(fiber, place_of(type, other))
        @locks[fiber] |= [other] if LOCKS.include?(type)
      end

      def end_call(fiber, type, other)
        return join(fiber, @clocks[other]) if type.equal?(Fiber)

        acquire(fiber, place_of(type, other))
        @locks[fiber].delete(other) if LOCKS.include?(type) && !owned?(other)
      end

      def place_of(type, object) = SYNCHRONIZING.include?(type) ? object : ANY

      def pass_fiber(fiber, other, method)
        if method == :initialize
          @clocks[other] = @clocks[fiber].merge(clock(other))
        elsif RESUMING.include?(method) && @clocks.key?(other)
          join(other, @clocks[fiber])
          # What a killed fiber was about to do is unknown.
          @frames.delete(other) if method == :kill
        end
        grow_older(fiber)
      end

      def release(fiber, place)
        @clocks[place] = place_clock(place).merge(@clocks[fiber]) { |_, one, two| [one, two].max }
        grow_older(fiber)
      end

      def place_clock(place) = @clocks[place] || {}.compare_by_identity

      def acquire(fiber, place) = join(fiber, @clocks[place])

      def join(fiber, clock)
        @clocks[fiber].merge!(clock) { |_, one, two| [one, two].max } if clock
      end

      def grow_older(fiber) = @clocks[fiber][fiber] += 1

      # A fiber that waits for a lock does not have it yet.
      def held(fiber) = @locks[fiber].select { |lock| owned?(lock) }

      def owned?(lock) = lock.is_a?(Monitor) ? lock.mon_owned? : lock.owned?

      # What the program does

      def pass_program(fiber, point)
        frames = @frames[fiber]
        case point.event
        when :line then pass_line(fiber, frames.last, point)
        when :call then frames << Frame.new(:method, point.lineno)
        when :b_call then frames << Frame.new(:block, point.lineno)
        when :c_call then pass_call_in_c(fiber, point)
        else pass_end(fiber, frames) if RETURNS.include?(point.event)
        end
      end

      def pass_line(fiber, frame, point)
        return unless frame

        end_line(fiber, frame)
        accesses = @accesses[point.path].at(frame.type, frame.place, point.lineno)
        frame.line = Line.new(point.self, accesses, use(fiber, point, nil)) unless accesses.empty?
      end

      def pass_end(fiber, frames)
        frame = frames.pop
        end_line(fiber, frame) if frame
        # The fiber may be awaited.
        release(fiber, ANY) if frames.empty?
      end

      # The line may have waited: for others its accesses come when it began, and for the fiber when it has ended.
      def end_line(fiber, frame)
        line = frame.line or return
        frame.line = nil
        line.accesses.each do |access|
          object = access.kind == :instance ? line.object : owner(line.object, access)
          note(fiber, object, access.name, line.use.with(written: access.written))
        end
      end

      def owner(object, access)
        return ANY if access.kind == :global

        type = object.is_a?(Module) ? object : object.class
        type.ancestors.find { |each| each.class_variables(false).include?(access.name) } || type
      end

      def pass_call_in_c(fiber, point)
        return throw_away(fiber) if point.method_id == :throw
        return unless CONTAINERS.include?(point.defined_class) && !MAKING.include?(point.method_id)

        object = point.self
        return if object.frozen?

        written = point.method_id.end_with?("!") || WRITING[point.defined_class].include?(point.method_id)
        note(fiber, object, point.defined_class.name, use(fiber, point, written))
      end

      # It is unknown what the lines have done that this ends.
      def throw_away(fiber) = @frames[fiber].each { |frame| frame.line = nil }

      def use(fiber, point, written)
        Use.new(fiber, written, point.path, point.lineno, @time, @clocks[fiber][fiber])
      end

      def note(fiber, object, name, use)
        locks = held(fiber)
        locks.each { |lock| acquire(fiber, lock) }
        compare(object, name, use)
        locks.each { |lock| release(fiber, lock) }
      end

      def compare(object, name, use)
        uses = @uses[object][name] ||= Uses.new(nil, {}.compare_by_identity)
        earlier = [uses.write, *(uses.reads.each_value if use.written)].compact
        other = earlier.find { |each| !ordered?(each, use) }
        @error ||= Race.new(message(object, name, [other, use])) if other
        if use.written
          uses.write = use
          uses.reads.clear
        else
          uses.reads[use.fiber] = use
        end
      end

      def ordered?(earlier, use)
        return true if earlier.fiber.equal?(use.fiber)

        seen = @clocks[use.fiber][earlier.fiber]
        (seen && seen >= earlier.age) || (earlier.time < use.time && !earlier.fiber.alive?)
      end

      def message(object, name, uses)
        lines = uses.map do |use|
          text = @files.source(use.path, use.line)
          "  #{Story.label(use.fiber)} #{use.written ? "writes" : "reads"} it at " \
            "#{@files.place(use.path, use.line)}#{": #{text}" if text}"
        end
        "Fibers use #{what(object, name)}, and nothing orders them.\n#{lines.join("\n")}"
      end

      def what(object, name)
        case name
        when /\A\$/ then name
        when /\A@@/ then "#{name} of #{object.inspect}"
        when /\A@/ then object.is_a?(Module) ? "#{name} of #{object.inspect}" : "#{name} of a #{object.class}"
        else name == "Array" ? "an Array" : "a #{name}"
        end
      end
    end
    private_constant :Races
  end
end
