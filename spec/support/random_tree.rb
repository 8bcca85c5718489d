# frozen_string_literal: true

# Grows a tree of fibers that spin, await, cancel, stop, raise, kill and open scopes at random, and counts how each
# ends.
class RandomTree
  class Failure < StandardError; end

  MOST_FIBERS = 60
  DEEPEST = 5
  FEWEST_STEPS = 4
  MOST_STEPS = 12
  MOMENT = 0.0005
  MOST_ROUNDS = 1000
  STEPS = %i[await wait compute move_on cancel stop finish disturb scope fail_sometimes].freeze

  # How often each fiber has begun, and how often it has run its ensure, by its number.
  attr_reader :begun, :ensured, :fibers
  # The numbers of the fibers that ran after their parent's end. Only Fiber#kill of a parent causes them.
  attr_reader :orphans

  def initialize(random)
    @random = random
    @begun = Hash.new(0)
    @ensured = Hash.new(0)
    @fibers = []
    @killed = {}
    @orphans = []
  end

  # Spins a fiber that runs random steps.
  def grow(depth = 0)
    parent = Fiber.current
    # A preemption in between would leave a hole in the list of fibers.
    Heddle.without_preemption do
      number = @fibers.size
      fiber = Heddle.spin(background: @random.rand(3).zero?) { live(number, depth, parent) }
      @fibers << fiber
      fiber
    end
  end

  private

  def live(number, depth, parent)
    @begun[number] += 1
    children = []
    @random.rand(FEWEST_STEPS..MOST_STEPS).times { step(children, depth) }
    number
  ensure
    @ensured[number] += 1
    sleep(MOMENT) if @random.rand(4).zero?
    @orphans << number unless parent.alive? || @killed[parent]
  end

  def step(children, depth)
    return spin(children, depth) if @random.rand < 0.5

    __send__(STEPS.sample(random: @random), children)
  end

  def spin(children, depth)
    children << grow(depth + 1) if depth < DEEPEST && @fibers.size < MOST_FIBERS
  end

  def stop(_children)
    Heddle.stop(@fibers.sample(random: @random))
  end

  def finish(children)
    Heddle.shield { wait(children) }
  end

  # Starts a fiber of each kind in a scope.
  def scope(children)
    Heddle.run { [spin(children, 0), Fiber.schedule { wait(children) }, wait(children)] }
  end

  def move_on(children)
    Heddle.move_on_after(@random.rand * MOMENT) { wait_for_ever(children) }
  end

  def fail_sometimes(_children)
    raise Failure if @random.rand(6).zero?
  end

  def await(children)
    Heddle.await_all(*children.sample(2, random: @random)) if children.any?
  rescue Failure
    raise if @random.rand(3).zero?
  end

  def cancel(children)
    Heddle.cancel_after(@random.rand * MOMENT, Failure) { wait_for_ever(children) }
  rescue Failure
    nil
  end

  def wait(_children)
    case @random.rand(3)
    when 0 then Heddle.snooze
    when 1 then sleep(@random.rand * MOMENT)
    when 2 then Queue.new.pop(timeout: @random.rand * MOMENT)
    end
  end

  def compute(_children)
    @random.rand(MOST_ROUNDS).times(&:to_s)
  end

  def wait_for_ever(children)
    case @random.rand(4)
    when 0 then sleep
    when 1 then Queue.new.pop
    when 2 then IO.pipe { |reader, _writer| reader.read(1) }
    when 3 then Heddle.await_all(*children)
    end
  end

  # Interrupts a fiber wherever it waits.
  def disturb(_children)
    fiber = @fibers.sample(random: @random)
    return if fiber.equal?(Fiber.current) || Heddle.state(fiber) != :waiting

    case @random.rand(2)
    when 0 then fiber.raise(Failure)
    when 1 then (@killed[fiber] = true) && fiber.kill
    end
  end
end
