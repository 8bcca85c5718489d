# frozen_string_literal: true

require "monitor"
require_relative "accesses"

module Heddle
  module Testing
    # Finds what fibers of one run use, one of them writing it, while nothing orders them: FastTrack, by Flanagan and
    # Freund. See {Clocks}.
    #
    # A fiber that has ended comes before all that begins later: so races stay unseen, and none is told that is none.
    class Races
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
      RETURNS = %i[return b_return].freeze
      EVENTS = [*Clocks::BEGINNINGS, :c_return, *RETURNS, :b_call, :line, :raise].freeze
      # The owner of global variables.
      GLOBALS = Object.new.freeze
      # Where the caller of a method that begins is in the backtrace of {#pass_call_in_ruby}: behind {#pass}, the
      # TracePoint's block and the method.
      CALLER = 4
      # The program may have overridden these.
      CLASS, FROZEN = %i[class frozen?].map { |name| Kernel.instance_method(name) }
      INSTANCE_METHOD, CLASS_VARIABLES, ANCESTORS, TO_S =
        %i[instance_method class_variables ancestors to_s].map { |name| Module.instance_method(name) }
      # What a fiber does in a line. `time` and `age` are those of the line's begin: of the run, and of the fiber.
      Use = Data.define(:fiber, :written, :path, :line, :time, :age)
      # The uses of a variable or an object that later ones are compared with.
      Uses = Struct.new(:write, :reads)
      # A method or a block of the program that runs. `line` has begun, and its accesses are noted when it has ended.
      # `made` is the object of `initialize`.
      Frame = Struct.new(:type, :place, :made, :line)
      Line = Data.define(:object, :accesses, :use)
      private_constant :CONTAINERS, :WRITING, :MAKING, :RETURNS, :EVENTS, :GLOBALS, :CALLER, :CLASS, :FROZEN,
                       :INSTANCE_METHOD, :CLASS_VARIABLES, :ANCESTORS, :TO_S, :Use, :Uses, :Frame, :Line

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
        @clocks = Clocks.new(by_locks: true)
        @frames = table { [] }
        @locks = table { {}.compare_by_identity }
        # The fibers that have called a method of a lock, which may have it now.
        @called = {}.compare_by_identity
        # What a line may have written that others read, by objects and names: it orders fibers.
        @published = table { {} }
        @uses = table { {} }
        @accesses = Hash.new { |accesses, path| accesses[path] = Accesses.of(path) }
        @accessors = table { {} }
      end

      # @param point [TracePoint]
      def pass(point)
        fiber = Fiber.current
        @clocks.enter(fiber)
        @time += 1
        take_locks(fiber) if @called.key?(fiber)
        if point.event == :raise
          throw_away(fiber)
        elsif @clocks.orders?(point)
          pass_order(fiber, point)
        elsif @files.include?(point.path)
          pass_program(fiber, point)
        elsif point.event == :call && CONTAINERS.include?(point.defined_class)
          pass_call_in_ruby(fiber, point)
        end
      end

      private

      def table = Hash.new { |table, object| table[object] = yield }.compare_by_identity

      # What orders fibers

      def pass_order(fiber, point)
        # As ConditionVariable#wait unlocks one.
        held(fiber).each { |lock| @clocks.release(fiber, lock) } if Clocks::BEGINNINGS.include?(point.event)
        @clocks.pass(fiber, point)
        type = point.defined_class
        if Clocks::LOCKS.include?(type)
          pass_lock(fiber, point)
        elsif Fiber.equal?(type) && point.method_id == :kill
          # What a killed fiber was about to do is unknown.
          @frames.delete(point.self)
        end
      end

      def pass_lock(fiber, point)
        lock = point.self
        locks = @locks[fiber]
        if Clocks::BEGINNINGS.include?(point.event)
          locks[lock] = @called[fiber] = true
        elsif !Clocks.owned?(lock)
          locks.delete(lock)
        end
      end

      # An Enumerator's fiber, which does not have the locks, comes after that.
      def take_locks(fiber)
        locks = held(fiber)
        locks.each { |lock| @clocks.acquire(fiber, lock) }
        @called.delete(fiber) unless locks.empty?
      end

      # A fiber that waits for a lock does not have it yet.
      def held(fiber) = @locks[fiber].each_key.select { |lock| Clocks.owned?(lock) }

      # What the program does

      def pass_program(fiber, point)
        frames = @frames[fiber]
        case point.event
        when :line then pass_line(fiber, frames.last, point)
        when :call then begin_frame(fiber, frames, :method, point)
        when :b_call then begin_frame(fiber, frames, :block, point)
        when :c_call then pass_call_in_c(fiber, point)
        else pass_end(fiber, frames) if RETURNS.include?(point.event)
        end
      end

      def begin_frame(fiber, frames, type, point)
        made = point.self if type == :method && MAKING.include?(point.method_id)
        frames << (frame = Frame.new(type, point.lineno, made))
        begin_line(fiber, frame, point, @accesses[point.path].first(type, point.lineno))
      end

      def pass_line(fiber, frame, point)
        return unless frame

        end_line(fiber, frame)
        begin_line(fiber, frame, point, @accesses[point.path].at(frame.type, frame.place, point.lineno))
      end

      def begin_line(fiber, frame, point, accesses)
        return if accesses.empty?

        frame.line = Line.new(point.self, accesses, use(fiber, point, nil))
        accesses.each { |access| acquire_published(fiber, owner(point.self, access), access.name) }
      end

      def pass_end(fiber, frames)
        end_line(fiber, frames.last) unless frames.empty?
        frames.pop
        # The fiber may be awaited.
        @clocks.release_all(fiber) if frames.empty?
      end

      # The line may have waited: for others its accesses come when it began, and for the fiber when it has ended.
      def end_line(fiber, frame)
        line = frame.line or return
        frame.line = nil
        line.accesses.each do |access|
          object = owner(line.object, access)
          if access.certain
            note(fiber, object, access.name, line.use.with(written: access.written))
          else
            @clocks.release(fiber, @published[object][access.name] ||= Object.new)
          end
        end
      end

      # As a fiber that reads `@table` where another one has run `@table ||= make` uses what that one has made.
      def acquire_published(fiber, object, name)
        place = @published.key?(object) && @published[object][name]
        @clocks.acquire(fiber, place) if place
      end

      # A class variable is looked for where the code is written, which is not seen: in the class of the object here.
      def owner(object, access)
        return object if access.kind == :instance
        return GLOBALS if access.kind == :global

        type = module?(object) ? object : CLASS.bind_call(object)
        ANCESTORS.bind_call(type).find { |each| CLASS_VARIABLES.bind_call(each, false).include?(access.name) } || type
      end

      # The method calls none of the object's own.
      def module?(object) = Module === object # rubocop:disable Style/CaseEquality

      def pass_call_in_c(fiber, point)
        method = point.method_id
        return throw_away(fiber) if method == :throw

        type = container(point) or return pass_accessor(fiber, point)
        return if MAKING.include?(method)

        note_call(fiber, point.self, type, use(fiber, point, writes?(type, method)))
      end

      # The class, if one of its methods is called, or one of Enumerable of its objects.
      def container(point)
        type = point.defined_class
        return type if CONTAINERS.include?(type)

        CONTAINERS.find { |each| each === point.self } if Enumerable.equal?(type) # rubocop:disable Style/CaseEquality
      end

      def writes?(type, method) = method.end_with?("!") || WRITING[type].include?(method)

      # Such as Array#first, which is written in Ruby.
      def pass_call_in_ruby(fiber, point)
        return unless point.path&.start_with?("<internal:") && !MAKING.include?(point.method_id)

        place = caller_locations(CALLER, 1)&.first
        return unless place && @files.include?(place.path)

        type = point.defined_class
        note_call(fiber, point.self, type, use(fiber, place, writes?(type, point.method_id)))
      end

      # Those of concurrent-ruby may be used by several threads at once.
      def note_call(fiber, object, type, use)
        return if FROZEN.bind_call(object) || Clocks.of_gem?(CLASS.bind_call(object))

        note(fiber, object, type.name, use)
      end

      # Such as that of attr_accessor: Ruby tells of it as of a method in C.
      def pass_accessor(fiber, point)
        type = point.defined_class
        name = @accessors[type].fetch(point.method_id) { |method| @accessors[type][method] = variable(type, method) }
        return if !name || FROZEN.bind_call(point.self)

        note(fiber, point.self, name, use(fiber, point, point.method_id.end_with?("=")))
      end

      # @return [String, nil] of which the method is an accessor
      def variable(type, method)
        found = INSTANCE_METHOD.bind_call(type, method)
        path, = found.source_location
        :"@#{found.original_name.to_s.chomp("=")}" if path && !path.start_with?("<internal:")
      rescue NameError
        # It was removed, or is hidden, while it ran.
        nil
      end

      # It is unknown what the lines have done that this ends.
      def throw_away(fiber) = @frames[fiber].each { |frame| frame.line = nil }

      # @param place [TracePoint, Thread::Backtrace::Location]
      def use(fiber, place, written)
        Use.new(fiber, written, place.path, place.lineno, @time, @clocks.age(fiber))
      end

      def note(fiber, object, name, use)
        return if @frames[fiber].any? { |frame| frame.made && Clocks.same?(frame.made, object) }

        acquire_published(fiber, object, name)
        locks = held(fiber)
        locks.each { |lock| @clocks.acquire(fiber, lock) }
        compare(object, name, use)
        locks.each { |lock| @clocks.release(fiber, lock) }
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

        seen = @clocks.seen(use.fiber)[earlier.fiber]
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
        when /\A@@/ then "#{name} of #{TO_S.bind_call(object)}"
        when /\A@/ then "#{name} of #{owner_text(object)}"
        else name == "Array" ? "an Array" : "a #{name}"
        end
      end

      def owner_text(object)
        module?(object) ? TO_S.bind_call(object) : "a #{TO_S.bind_call(CLASS.bind_call(object))}"
      end
    end
    private_constant :Races
  end
end
