# frozen_string_literal: true

require_relative "explored_case"

# The cases: for each subject, what two fibers do with it at the same time.
module Subjects
  Expected = ExploredCase::Expected

  # How the fiber that performs the first operation is disturbed.
  DISTURBANCES = {
    "" => ->(_task) {},
    ", stopped" => :stop.to_proc,
    ", killed" => :kill.to_proc,
    ", raised into" => ->(task) { Subjects.raise_in(task) }
  }.freeze

  # An object, its operations, and what holds when they have ended.
  Subject = Data.define(:make, :operations, :check, :threads)

  FIBER = {
    "await" => ->(fiber) { Heddle.await(fiber) if fiber.alive? },
    "await_all" => ->(fiber) { Heddle.await_all(fiber, Heddle.spin { Heddle.snooze }) if fiber.alive? },
    "spin and await" => ->(fiber) { Heddle.spin { fiber.alive? && Heddle.await(fiber) }.await },
    "stop" => ->(fiber) { Heddle.stop(fiber) },
    "raise" => ->(fiber) { Subjects.raise_in(fiber) },
    "kill" => :kill.to_proc,
    "limit" => ->(fiber) { Heddle.move_on_after(1) { fiber.alive? && Heddle.await(fiber) } },
    "shield" => ->(fiber) { Heddle.shield { fiber.alive? && Heddle.await(fiber) } },
    "scope" => ->(fiber) { Heddle.run { Heddle.spin { fiber.alive? && Heddle.await(fiber) } } },
    "race" => ->(fiber) { Heddle.race(-> { fiber.alive? && Heddle.await(fiber) }, -> { sleep 2 }) },
    "map" => ->(fiber) { Heddle.map(1..2) { fiber.alive? && Heddle.await(fiber) } }
  }.freeze

  OVER = ->(fiber) { sleep 4 and fiber.alive? and raise "it has not ended" }

  SUBJECTS = {
    "a task" => Subject.new(-> { Heddle.spin { quietly { sleep 3 } } }, FIBER, OVER, false),
    # Its own first child, too, may come at any time.
    "a fiber of Fiber.schedule" => Subject.new(
      -> { Fiber.schedule { quietly { Heddle.snooze && Heddle.spin { sleep 1 } && sleep(3) } } }, FIBER, OVER, false
    ),
    "Barrier" => Subject.new(
      -> { Heddle::Barrier.new },
      {
        "spin" => ->(barrier) { barrier.spin { sleep 1 } },
        "spin that fails" => ->(barrier) { barrier.spin { raise Expected } },
        "spin in the background" => ->(barrier) { barrier.spin(background: true) { sleep } && Heddle.snooze },
        "await_all" => ->(barrier) { Heddle.move_on_after(5) { barrier.await_all } },
        "stop" => :stop.to_proc
      },
      ->(barrier) { [barrier.stop.size, barrier.await_all] == [0, []] or raise "it has forgotten no fibers" }, false
    ),
    "Semaphore" => Subject.new(
      -> { Heddle::Semaphore.new(1) },
      {
        "acquire with a block" => ->(semaphore) { semaphore.acquire { Heddle.snooze } },
        "acquire with a timeout" => ->(semaphore) { semaphore.acquire(timeout: 1) { sleep 2 } },
        "try_acquire" => ->(semaphore) { Heddle.without_preemption { semaphore.try_acquire && semaphore.release } },
        "limit" => ->(semaphore) { Heddle.move_on_after(1) { semaphore.acquire { sleep 2 } } }
      },
      ->(semaphore) { [semaphore.available, semaphore.waiting] == [1, 0] or raise "lost: #{semaphore.inspect}" },
      false
    ),
    "Deadline" => Subject.new(
      -> { Queue.new },
      {
        "limit" => ->(limits) { Heddle.move_on_after(1) { |limit| (limits << limit) && sleep } },
        "limit that raises" => lambda do |limits|
          Heddle.cancel_after(1, Expected) { |limit| (limits << limit) && sleep }
        end,
        "reset" => ->(limits) { limits.pop(timeout: 1)&.reset(2) },
        "remaining" => ->(limits) { limits.pop(timeout: 1)&.remaining }
      },
      ->(_) {}, false
    ),
    "ThreadPool" => Subject.new(
      -> { POOL },
      {
        "process" => ->(pool) { pool.process { :done } },
        "process that fails" => ->(pool) { pool.process { raise Expected } },
        "process within process" => ->(pool) { pool.process { pool.process { :done } } },
        "limit" => ->(pool) { Heddle.move_on_after(0.001) { pool.process { :done } } }
      },
      ->(pool) { pool.process { :works } == :works or raise "it does not work any more" }, true
    )
  }.freeze

  # What many fibers use, and those of a forked child, too.
  FORKED = %w[Barrier].freeze

  # How a parent's block ends.
  ENDS = {
    "returns" => -> {},
    "waits and returns" => -> { sleep 2 },
    "raises" => -> { raise Expected },
    "is stopped" => -> { Fiber.current.stop },
    "is stopped in a wait" => -> { Heddle.spin(Fiber.current, background: true, &:stop) && sleep(2) },
    "runs into a limit" => -> { Heddle.cancel_after(1, Expected) { sleep } },
    "opens a scope" => -> { Heddle.run { Heddle.spin { sleep 1 } } }
  }.freeze

  # What a child does.
  CHILDREN = {
    "returns" => -> { Heddle.spin { Heddle.snooze } },
    "fails" => -> { Heddle.spin { raise Expected } },
    "fails when it is stopped" => -> { Heddle.spin(background: true) { begin_then { raise Expected } } },
    "is in the background" => -> { Heddle.spin(background: true) { sleep } },
    "is awaited" => -> { Heddle.spin { sleep 1 }.await },
    "is awaited and fails" => -> { Heddle.spin { raise Expected }.await },
    "is limited by its own block" => -> { Heddle.spin { Heddle.move_on_after(1) { sleep } } }
  }.freeze

  class << self
    # @return [Array<ExploredCase>]
    def cases
      trees + SUBJECTS.flat_map { |name, subject| pairs(name, subject) } +
        FORKED.flat_map { |name| forked(name, SUBJECTS.fetch(name)) }
    end

    # Runs a block that may raise what is expected: the fiber may have ended just before it is awaited.
    def quietly
      yield
    rescue Expected
      nil
    rescue FiberError => e
      raise unless e.message.include?("is dead")
    end

    # Raises in a fiber that waits, and may have ended since it was asked.
    def raise_in(fiber)
      fiber.raise(Expected) if Heddle.state(fiber) == :waiting
    rescue FiberError
      nil
    end

    # Waits, and then runs the block at the fiber's end.
    def begin_then
      sleep
    ensure
      yield
    end

    private

    # Each end of a parent beside each pair of children: no child outlives it, and each error is raised once.
    def trees
      CHILDREN.keys.repeated_combination(2).to_a.product(ENDS.keys).map do |(one, two), ending|
        ExploredCase.new("parents and children", "#{one}, #{two}; the parent #{ending}", preemptions: 2) do
          family = []
          parent = Heddle.spin do
            family << Fiber.current
            [one, two].each { |child| instance_exec(&CHILDREN[child]) }
            ENDS[ending].call
          ensure
            family.concat(Fiber.current.children)
          end
          raised = errors_of(parent)
          raise "the error was raised #{raised} times" if raised > 1
          raise "a child has outlived its parent" if family.any?(&:alive?)
        end
      end
    end

    # @return [Integer] how often the parent's error is raised here
    def errors_of(parent)
      [-> { parent.await }, -> { sleep 5 }].count do |wait|
        wait.call
        false
      rescue Expected
        true
      end
    end

    def pairs(name, subject)
      operations = subject.operations
      operations.keys.repeated_combination(2).to_a.product(DISTURBANCES.keys).map do |(one, two), disturbance|
        ExploredCase.new(name, "#{one} beside #{two}#{disturbance}", threads: subject.threads) do
          object = instance_exec(&subject.make)
          both = operations.values_at(one, two).map { |operation| perform(operation, object) }
          Heddle.snooze
          DISTURBANCES[disturbance].call(both.first)
          both.each { |task| quietly { task.await } }
          subject.check.call(object)
        end
      end
    end

    # The process forks wherever an operation has been preempted. A child has none of its parent's fibers.
    def forked(name, subject)
      subject.operations.keys.repeated_combination(2).map do |one, two|
        ExploredCase.new(name, "#{one} in the parent, #{two} in a forked child") do
          object = instance_exec(&subject.make)
          own = perform(subject.operations.fetch(one), object)
          Heddle.snooze
          in_child do
            quietly { perform(subject.operations.fetch(two), object).await }
            subject.check.call(object)
          end
          quietly { own.await }
        end
      end
    end

    def in_child(&program)
      child = fork do
        Thread.new { Heddle::Testing.run(clock: :virtual, &program) }.join
        exit!(0)
      rescue Exception => e # rubocop:disable Lint/RescueException -- the child must not go on with the exploration
        warn e.full_message
        exit!(1)
      end
      Fiber.blocking { Process.wait(child) }
      raise "the child has failed" unless Process.last_status.success?
    end

    # In a scope, which raises the errors of the fibers that the operation starts.
    def perform(operation, object) = Heddle.spin { quietly { Heddle.run { operation.call(object) } } }
  end

  # Its thread runs before the first schedule: an explored program starts none.
  POOL = Heddle::ThreadPool.new(threads: 1)
end
