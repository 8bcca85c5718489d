# frozen_string_literal: true

module Heddle
  module Testing # :nodoc:
    # One run of the program, under one schedule.
    class Run
      # What a run has come to.
      Outcome = Data.define(:error, :steps, :deviations, :decisions, :story)

      VARIABLE = :heddle_testing_run
      EVENTS = %i[line call return b_return c_return].freeze
      # The ends of these methods are no points, as they are instructions of Ruby's virtual machine for its own classes,
      # in which no preemption happens.
      INSTRUCTIONS = %i[
        + - * / % & | << >> < <= > >= == != ! === =~ [] []= -@ +@ ~ ^ <=> size length empty? succ nil? not freeze hash
        min max include? pack
      ].to_h { |name| [name, true] }.freeze
      # Nor are the ends of these. They are written in C in some versions and in Ruby in others, or defined at a
      # program's beginning; they call a block or another method, whose end is a point.
      NO_POINTS = %i[
        first last to_s inspect itself class dup clone frozen? zero? positive? negative? even? odd? to_i to_f new
        initialize exception backtrace loop times each each_with_index each_index each_entry map collect flat_map
        select filter reject tap then yield_self reverse_each upto downto step sum any? all? none? find detect inject
        reduce attr_reader attr_writer attr_accessor private public protected define_method method_added
        singleton_method_added inherited require require_relative synchronize lock unlock try_lock locked? owned? wait
        signal broadcast name id2name to_r to_c rationalize marshal_dump xmlschema iso8601
      ].to_h { |name| [name, true] }.freeze
      # Set is written in C in some versions of Ruby only. Hooks are called by methods of Ruby, of which the same holds.
      NO_POINTS_OF = { Set => true, Scheduler => true }.compare_by_identity
      # These are written in C in all versions, and `empty?` is no instruction for them. That one of them is made is
      # no point: it may note its origin then (QueueOrigins).
      POINTS_OF = { Thread::Queue => true, Thread::SizedQueue => true }.compare_by_identity
      THREADS = %i[new start fork].freeze
      AGAIN = 1_000
      private_constant :VARIABLE, :EVENTS, :INSTRUCTIONS, :NO_POINTS, :NO_POINTS_OF, :POINTS_OF, :THREADS,
                       :AGAIN

      class << self
        # @return [Run, nil] the run that is under way on this thread
        def of_thread = Thread.current.thread_variable_get(VARIABLE)

        # While the block runs, points of this thread are noticed. Beginning this takes far longer than a run.
        def noticing(files)
          points = TracePoint.new(*EVENTS) { |point| of_thread&.pass(point) if files.include?(point.path) }
          # With a block it is enabled for this thread only.
          Native.with_branches { points.enable { yield } } # rubocop:disable Style/ExplicitBlockArgument
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
        @story&.preempt_at_branch if Native.preempted_at_branch?(scheduler)
        steps, deviations, decisions = Native.explored(scheduler)
        Outcome.new(error: @errors.first || error, steps:, deviations:, decisions:, story: @story)
      end

      # The running fiber passes a point. It may be preempted here.
      def pass(point)
        return if @scheduler.nil? || (point.event == :c_return && !point?(point))

        steps = @story ? pass_in_story(point) : Native.pass_point(@scheduler, point.event == :line)
        never_ends(point) if steps > @limit
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
        @story.preempt_at_branch if Native.preempted_at_branch?(@scheduler)
        segment = @story.pass(point)
        steps = Native.pass_point(@scheduler, point.event == :line)
        @story.continue(segment)
        steps
      end

      def point?(point)
        name = point.method_id
        started = point.self if THREADS.include?(name)
        refuse_thread(point) if started.is_a?(Class) && started <= Thread
        end_of_method?(name, point.defined_class)
      end

      def end_of_method?(name, owner)
        return true if POINTS_OF[owner] && name != :initialize
        return false if INSTRUCTIONS[name] && !NO_POINTS_OF[owner]
        return true unless NO_POINTS[name] || NO_POINTS_OF[owner]

        # Where the method is written in Ruby, the next branch is within it.
        Native.end_line(@scheduler)
        false
      end

      def refuse_thread(point)
        raise ThreadError, "Heddle::Testing.explore: the program starts a thread at #{at(point)}. What threads do is " \
                           "no part of the schedule, so a failure could not be repeated: use Heddle.spin in the test"
      end

      # The program may rescue the error, and gets it again after so many points more.
      def never_ends(point)
        @limit += AGAIN
        error = NeverEnds.new("the program has passed #{@limit - AGAIN} points without an end, at last in " \
                              "#{Story.label(Fiber.current)} at #{at(point)}: raise steps: if it needs more")
        @errors << error
        raise error
      end

      def at(point) = @files.place(point.path, point.lineno)
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
