# frozen_string_literal: true

module Heddle
  module Testing # :nodoc:
    # One run of the program, under one schedule.
    class Run
      # What a run has come to.
      Outcome = Data.define(:error, :steps, :deviations, :decisions, :story)

      VARIABLE = :heddle_testing_run
      EVENTS = %i[line call return b_return c_return].freeze
      # The ends of these methods are no points. The operators and the first names are instructions of Ruby's virtual
      # machine for its own classes, in which no preemption happens. The others are written in C in some versions and in
      # Ruby in others, or defined at a program's beginning; they call a block or another method, whose end is a point.
      NO_POINTS = %i[
        + - * / % & | << >> < <= > >= == != ! === =~ [] []= -@ +@ ~ ^ <=> size length empty? succ nil? not freeze hash
        min max first last include? pack to_s to_sym inspect itself class dup clone frozen? zero? positive? negative?
        even? odd? to_i to_f new initialize exception backtrace loop times each each_with_index each_index each_entry
        map collect flat_map select filter reject tap then yield_self reverse_each upto downto step sum any? all? none?
        find detect inject reduce attr_reader attr_writer attr_accessor private public protected define_method
        method_added singleton_method_added inherited require require_relative synchronize lock unlock try_lock locked?
        owned? wait signal broadcast name id2name to_r to_c rationalize marshal_dump xmlschema iso8601
      ].to_h { |name| [name, true] }.freeze
      # Set is written in C in some versions of Ruby only. Hooks are called by methods of Ruby, of which the same holds.
      NO_POINTS_OF = { Set => true, Scheduler => true }.compare_by_identity
      THREADS = %i[new start fork].freeze
      private_constant :VARIABLE, :EVENTS, :NO_POINTS, :NO_POINTS_OF, :THREADS

      class << self
        # @return [Run, nil] the run that is under way on this thread
        def of_thread = Thread.current.thread_variable_get(VARIABLE)

        # While the block runs, points of this thread are noticed. Beginning this takes far longer than a run.
        def noticing(files)
          TracePoint.new(*EVENTS) { |point| of_thread&.pass(point) if files.include?(point.path) }.enable { yield } # rubocop:disable Style/ExplicitBlockArgument -- with a block it is enabled for this thread only
        end
      end

      # @return [ProgramFiles]
      attr_reader :files

      # @param program [Proc]
      # @param settings [Settings]
      # @param story [Story, nil] notes what the fibers do
      def initialize(program, settings, story: nil)
        @program = program
        @files = settings.files
        @idle = settings.idle
        @limit = settings.steps
        @options = { preempt: :all, backend: settings.backend }.compact
        @story = story
        @errors = []
      end

      # @param schedule [#begin] see {Schedule}
      # @return [Outcome]
      def call(schedule)
        # Before its first fiber runs, as ticks would decide which fibers wait until then.
        scheduler = Scheduler.new(**@options).tap { |new| schedule.begin(new) }
        error = failure do
          Root.run(scheduler, @program) do
            @scheduler = scheduler
            @task = Task.current(scheduler)
            @idle ? VirtualClock.use(scheduler, @idle, &@program) : @program.call
          end
        end
        @scheduler = nil
        steps, deviations, decisions = Native.explored(scheduler)
        Outcome.new(error: @errors.first || error, steps:, deviations:, decisions:, story: @story)
      end

      # The running fiber passes a point. It may be preempted here.
      def pass(point)
        return if @scheduler.nil? || (point.event == :c_return && !point?(point))

        steps = @story ? pass_in_story(point) : Native.pass_point(@scheduler)
        never_ends(point) if steps > @limit && ((steps - @limit) % 1_000) == 1
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
        raise unless e.is_a?(Deadlock) || e.equal?(@task&.error)

        e
      ensure
        Thread.current.thread_variable_set(VARIABLE, nil)
        VirtualClock.forget if @idle
      end

      def pass_in_story(point)
        segment = @story.pass(point)
        steps = Native.pass_point(@scheduler)
        @story.continue(segment)
        steps
      end

      def point?(point)
        name = point.method_id
        started = point.self if THREADS.include?(name)
        refuse_thread(point) if started.is_a?(Class) && started <= Thread
        !NO_POINTS[name] && !NO_POINTS_OF[point.defined_class]
      end

      def refuse_thread(point)
        raise ThreadError, "Heddle::Testing.explore: the program starts a thread at #{at(point)}. What threads do is " \
                           "no part of the schedule, so a failure could not be repeated: use Heddle.spin in the test"
      end

      def never_ends(point)
        error = NeverEnds.new("the program has passed #{@limit} points without an end, at last in " \
                              "#{Story.label(Fiber.current)} at #{at(point)}: raise steps: if it needs more")
        @errors << error
        raise error
      end

      def at(point) = "#{Text.clean(@files.short(point.path))}:#{point.lineno}"
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
