# frozen_string_literal: true

# Every place that starts work, and what the work sees of the context of the fiber that starts it.
module WorkPlaces
  # The rows of the table in docs/structured-concurrency.md; each runs `work`, and waits for its end.
  PLACES = {
    "Heddle.run { }" => ->(work) { Heddle.run { work.call } },
    "Heddle.run { } in Heddle.run { }" => ->(work) { Heddle.run { work.call } },
    "Heddle.spin { }" => ->(work) { Heddle.await(Heddle.spin { work.call }) },
    "Heddle.after(1) { }" => ->(work) { Heddle.await(Heddle.after(0) { work.call }) },
    "Heddle.map(items) { }" => ->(work) { Heddle.map([1]) { work.call } },
    "Heddle.race(-> { })" => ->(work) { Heddle.race(work) },
    "Heddle.every(1) { }" => ->(work) { Heddle.every(0) { break work.call } },
    "barrier.spin { }" => ->(work) { Heddle::Barrier.new.tap { |barrier| barrier.spin { work.call } }.await_all },
    "Fiber.schedule { }" => ->(work) { wait { |done| Fiber.schedule { work.call && done.call } } },
    "YieldingFiber.schedule { }" => ->(work) { wait { |done| YieldingFiber.schedule { work.call && done.call } } },
    "thread_pool.process { }" => ->(work) { thread_pool.process { work.call } },
    "Heddle::Offload.call { }" => ->(work) { Heddle::Offload.call { work.call } },
    "executor.post { }" => ->(work) { wait { |done| executor.post { work.call && done.call } } },
    "executor.post { } with on: :thread" =>
      ->(work) { wait { |done| thread_executor.post { work.call && done.call } } },
    "a job of Active Job's adapter :heddle" => ->(work) { wait { |done| jobs.post("any") { work.call && done.call } } },
    "such a job of a queue with a limit" => ->(work) { wait { |done| jobs.post("one") { work.call && done.call } } },
    "Thread.new { }" => ->(work) { Thread.new { work.call }.join }
  }.freeze

  # How a program reads and writes a kind of context.
  Kind = Data.define(:read, :write)
  STORAGE = Kind.new(read: -> { Fiber[:probe] }, write: ->(value) { Fiber[:probe] = value })
  LOCALS = Kind.new(read: -> { Thread.current[:probe] }, write: ->(value) { Thread.current[:probe] = value })

  # What `Heddle.carry_context` was told to carry: here a variable of the fiber.
  CARRIED = Kind.new(read: -> { Thread.current[:carried] }, write: ->(value) { Thread.current[:carried] = value })

  class << self
    # Carries it while the block runs.
    def carrying
      subscription = Heddle.carry_context do
        value = Thread.current[:carried]
        lambda do |&work|
          before = Thread.current[:carried]
          Thread.current[:carried] = value
          work.call
        ensure
          Thread.current[:carried] = before
        end
      end
      yield
    ensure
      subscription.unsubscribe
    end

    # @return [String] a cell of the table
    def cell(place, kind)
      seen, after = %i[alice bob].map { |value| Heddle.run { observe(place, kind, value) } }.transpose
      case seen
      when %i[alice bob] then after == %i[work work] ? "the caller's" : "a copy"
      when [nil, nil] then "nothing"
      when [nil, :work] then "the thread's"
      else "unexpected: #{seen}"
      end
    ensure
      close
    end

    private

    # Ends the threads of the places.
    def close
      @thread_pool&.close
      [@executor, @thread_executor].compact.each { |each| each.shutdown && each.wait_for_termination }
      Heddle::Offload.pool.close
      Heddle::Offload.pool = Heddle::ThreadPool.new(threads: Heddle::Offload::DEFAULT_THREADS)
      instance_variables.each { |variable| remove_instance_variable(variable) }
    end

    # @return [Array] what the work sees, and what its caller sees after it
    def observe(place, kind, value)
      # Each thread is the only one of its pool, so that both jobs run on it.
      Heddle::Offload.pool = @offload ||= Heddle::ThreadPool.new(threads: 1)
      from(place) do
        kind.write.call(value)
        seen = nil
        work = lambda do
          seen = kind.read.call
          kind.write.call(:work)
          true
        end
        instance_exec(work, &PLACES.fetch(place))
        [seen, kind.read.call]
      end
    end

    def from(place, &)
      place == "Heddle.run { }" ? Thread.new(&).value : Heddle.await(Heddle.spin(&))
    end

    def wait
      queue = Thread::Queue.new
      yield -> { queue << true }
      queue.pop
    end

    def thread_pool = @thread_pool ||= Heddle::ThreadPool.new(threads: 1)

    def executor = @executor ||= Heddle::Executor.new

    def thread_executor = @thread_executor ||= Heddle::Executor.new(on: :thread)

    def jobs = @jobs ||= Heddle::Jobs::LimitedQueues.new(thread_executor, { "one" => 1 })
  end
end
