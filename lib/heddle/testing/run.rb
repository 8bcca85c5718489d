# frozen_string_literal: true

module Heddle
  module Testing # :nodoc:
    # One run of the program, under one schedule.
    class Run
      # What a run has come to.
      Outcome = Data.define(:error, :steps, :deviations, :decisions, :story, :jumps)

      VARIABLE = :heddle_testing_run
      EVENTS = %i[line call return b_return c_return].freeze
      # After these the line goes on, and the next branch in it is a point.
      WITHIN_LINE = %i[line c_return].freeze
      # At these Ruby checks interrupts.
      CHECKS = %i[return b_return c_return].freeze
      THREADS = %i[new start fork].freeze
      # How many points more a program may pass that has rescued the error of too many points.
      AGAIN = 1_000
      # How many fibers are killed of a program that continues nevertheless.
      MOST_KILLS = 1_000
      # After so many seconds within one line of the program the fiber passes a point there. They are seconds of the
      # thread's own CPU time: a line that computes less passes none, however busy the machine is.
      LONG = 0.5
      # This stands for so many points of `steps`: an endless line ends after four of them at the default.
      POINTS_OF_LONG = 25_000
      # A tick may come in the block of the TracePoint, too.
      OWN = File.dirname(__FILE__)
      # The program may stub the method.
      CLOCK = Process.method(:clock_gettime)
      private_constant :VARIABLE, :EVENTS, :WITHIN_LINE, :CHECKS, :THREADS, :AGAIN, :MOST_KILLS, :LONG,
                       :POINTS_OF_LONG, :OWN, :CLOCK

      class << self
        # @return [Run, nil] the run that is under way on this thread
        def of_thread = Thread.current.thread_variable_get(VARIABLE)

        # While the block runs, points of this thread are noticed. Beginning this takes far longer than a run.
        def noticing(files)
          points = TracePoint.new(*EVENTS) do |point|
            if files.include?(point.path)
              of_thread&.pass(point)
            else
              outside(point, files)
            end
          end
          # With a block it is enabled for this thread only.
          Native.with_branches { points.enable { yield } } # rubocop:disable Style/ExplicitBlockArgument
        end

        # The extension calls this at a tick, if no point has come since the last tick, and at some of the branches.
        #
        # @param points [Integer] how many there were
        def pass_tick(points) = of_thread&.pass_tick(points)

        # The extension calls this where a limit begins in a run that explores limits.
        #
        # @param number [Integer] of the limit
        # @return [Boolean] whether the program has set it, and not what runs the program, such as a test framework
        def begin_limit?(number)
          run = of_thread or return false
          place = caller_locations.take_while { |location| location.path != __FILE__ }
                                  .find { |location| run.files.include?(location.path) }
          run.begin_limit(number, place) if place
          !place.nil?
        end

        # The extension calls this where the schedule lets a limit elapse while the running fiber computes.
        #
        # @param number [Integer] of the limit
        def pass_limit(number) = of_thread&.pass_limit(number)

        private

        # Calls.line_after counts the frames down to here.
        def outside(point, files)
          if point.event == :return
            line = Calls.line_after(point, files)
            of_thread&.pass_end(line) if line
          elsif point.event == :call && point.method_id == :post
            of_thread&.refuse_pool(point.self)
          end
        end
      end

      # @return [ProgramFiles]
      attr_reader :files

      # @param program [Proc]
      # @param settings [Settings]
      # @param coverage [Coverage]
      # @param story [Story, nil] notes what the fibers do
      # @param waits [Hash] how long a virtual clock waits: see {VirtualClock#initialize}
      def initialize(program, settings, coverage:, story: nil, waits: {})
        @program = program
        @files = settings.files
        @idle = settings.idle
        @limit = settings.steps
        @explores_limits = settings.limits
        @detectors = settings.detectors.to_h { |type| [type, type.new(@files)] }
        @options = { preempt: :all, backend: settings.backend, cooperative: settings.cooperative }.compact
        @coverage = coverage
        @story = story
        @waits = waits
        @errors = []
        @passed = @kills = @points_of_long = 0
      end

      # @param schedule [#begin] see {Schedule}
      # @return [Outcome]
      def call(schedule)
        # Before its first fiber runs, as ticks would decide which fibers wait until then.
        scheduler = Scheduler.new(**@options).tap { |new| schedule.begin(new) }
        Native.explore_limits(scheduler) if @explores_limits
        error = failure do
          Root.run(scheduler, @program) do
            # The root comes to its wait for the end of the program, as a step of it is none of the program's. Each
            # later choice would have one option more.
            scheduler.block(self, 0)
            @scheduler = scheduler
            # Also without a story, as messages that name fibers are compared.
            Story.call_fiber(Fiber.current, Story::PROGRAM)
            @node = TreeNode.current(scheduler)
            @idle ? VirtualClock.use(scheduler, @idle, **@waits, &@program) : @program.call
          end
        end
        @scheduler = nil
        @story&.preempt_at_branch if Native.preempted_at_branch?(scheduler)
        steps, deviations, decisions = Native.explored(scheduler)
        jumps = VirtualClock::Jumps.of(scheduler) if @idle
        Outcome.new(error: fault(error), steps:, deviations:, decisions:, story: @story, jumps:)
      end

      # @return [Object, nil] the one of this class, while the program runs
      def detector(type) = @scheduler && @detectors[type]

      # The running fiber passes a point. It may be preempted here.
      def pass(point)
        return if @scheduler.nil?

        kind = point.event == :c_return ? kind_of_return(point) : :point
        return Native.end_line(@scheduler) if kind == :varies
        return if kind == :none

        pass_at(point, point.event) do
          within_line = kind != :last && WITHIN_LINE.include?(point.event)
          Native.pass_point(@scheduler, within_line, kind == :yields, CHECKS.include?(point.event))
        end
      end

      # A method of Ruby's own that is written in Ruby returns to a line. The running fiber may be preempted here.
      #
      # @param line [Thread::Backtrace::Location]
      def pass_end(line)
        return if @scheduler.nil?

        pass_at(line, :c_return) { Native.pass_point(@scheduler, false, false, true) }
      end

      # The running fiber computes, and Ruby has told of no event meanwhile. In a line that passes no points, it passes
      # one after a while, and yields there. Otherwise a loop within the line would never end.
      #
      # @param points [Integer] how many there were
      def pass_tick(points)
        return if @scheduler.nil?

        # The fiber of an Enumerator has frames without a path.
        place = caller_locations.find { |location| !location.path.to_s.start_with?(OWN, "<internal:") }
        return @points_at_tick = nil unless @files.include?(place&.path)
        return expect_end(points, place) unless long?(points)

        @points_of_long += POINTS_OF_LONG
        pass_at(place, :line) { Native.pass_point(@scheduler, false, true, true) }
      end

      # The running fiber begins a block with the limit of this number.
      #
      # @param place [Thread::Backtrace::Location] where the program sets it
      def begin_limit(number, place)
        @story&.begin_limit(number, place, Native.virtual_time(@scheduler))
      end

      # The limit with this number elapses while the running fiber computes.
      def pass_limit(number)
        @story&.pass_limit(number, Native.virtual_time(@scheduler))
      end

      # A method `post` of a gem begins. By that, concurrent-ruby gives a task to a pool of threads.
      #
      # @param executor [Object] whose method it is
      def refuse_pool(executor)
        return unless @scheduler && Object.const_defined?("Concurrent::RubyExecutorService")
        return unless executor.is_a?(::Concurrent::RubyExecutorService)

        place = caller_locations.find { |location| @files.include?(location.path) }
        error = ThreadError.new("Heddle::Testing.explore: the program has a thread of concurrent-ruby run a task" \
                                "#{" at #{at(place)}" if place}. What threads do is no part of the schedule, so a " \
                                "failure could not be repeated: give the task to a Heddle::Executor in the test")
        # The gem may rescue it.
        @errors << error
        raise error
      end

      # An error has left a fiber that nothing awaits.
      def unhandled(error)
        @errors << error
      end

      private

      def failure
        Thread.current.thread_variable_set(VARIABLE, self)
        yield
        nil
      rescue SignalException, SystemExit, NoMemoryError
        raise
      rescue Exception => e # rubocop:disable Lint/RescueException -- whatever the program raises, a deadlock too
        # Another thread has raised any other exception in this thread, as Timeout does.
        raise unless e.is_a?(Deadlock) || e.equal?(@node&.error)

        e
      ensure
        Thread.current.thread_variable_set(VARIABLE, nil)
        VirtualClock.forget if @idle
      end

      def kind_of_return(point)
        refuse_thread(point) if THREADS.include?(point.method_id)
        Calls.kind(point)
      end

      # @return [Exception, nil] what is told of the run whose block has raised this error
      def fault(error) = @errors.first || error || @detectors.each_value.filter_map(&:error).first

      # @param place [TracePoint, Thread::Backtrace::Location]
      # @yieldreturn [Integer] how many points the run has passed
      def pass_at(place, event, &)
        @coverage.pass(place)
        number = @passed += 1
        steps = @story ? pass_in_story(place, event, &) : yield
        # Another fiber has passed points meanwhile.
        @coverage.preempt(place) if @passed != number
        expect_end(steps, place)
      end

      def pass_in_story(place, event)
        @story.preempt_at_branch if Native.preempted_at_branch?(@scheduler)
        segment = @story.pass(place, event, Native.switches(@scheduler))
        steps = yield
        @story.continue(segment)
        steps
      end

      def refuse_thread(point)
        started = point.self
        # The program may have overridden the methods of its class.
        return unless Class === started && [Thread].any? { |type| type >= started } # rubocop:disable Style/CaseEquality

        raise ThreadError, "Heddle::Testing.explore: the program starts a thread at #{at(point)}. What threads do is " \
                           "no part of the schedule, so a failure could not be repeated: use Heddle.spin in the test"
      end

      # @return [Boolean] whether the fiber has computed for {LONG} without a point
      def long?(points)
        now = CLOCK.call(Process::CLOCK_THREAD_CPUTIME_ID)
        computes = points == @points_at_tick
        return false if computes && now - @computes_since < LONG

        @points_at_tick = points
        @computes_since = now
        computes
      end

      def expect_end(steps, place)
        never_ends(place) if steps + @points_of_long > @limit
      end

      # The program may rescue the error. If it then passes many points more, each fiber is killed at its next point,
      # which nothing rescues.
      def never_ends(place)
        return kill(Fiber.current) if @never_ends

        error = NeverEnds.new("the program has passed #{@limit} points without an end, at last in " \
                              "#{Story.label(Fiber.current)} at #{at(place)}: raise steps: if it needs more")
        # In this order: a tick may come before each line, and passes a point.
        @limit += AGAIN
        @errors << error
        @never_ends = error
        raise error
      end

      # An `ensure` clause of a loop may continue the loop all the same. Such a fiber waits until the scheduler, at its
      # end, abandons it.
      def kill(fiber)
        @kills += 1
        @kills > MOST_KILLS ? @scheduler.block(:never_ends, nil) : fiber.kill
      end

      def at(place) = @files.place(place.path, place.lineno)
    end
    private_constant :Run

    # Errors of fibers that nothing awaits belong to the run.
    module UnhandledErrors
      # The extension calls this.
      def unhandled(error, block)
        run = Run.of_thread
        return super unless run

        run.unhandled(error)
        false
      end
    end
    private_constant :UnhandledErrors
    Reports.singleton_class.prepend(UnhandledErrors)
  end
end
