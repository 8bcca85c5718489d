# frozen_string_literal: true

RSpec.describe "Random trees of fibers that spin, await, cancel, stop, raise and kill" do
  # HEDDLE_TREES sets another number.
  trees = Integer(ENV.fetch("HEDDLE_TREES", 150))
  # HEDDLE_TREES_SEED sets the seed of the first tree.
  first_seed = Integer(ENV.fetch("HEDDLE_TREES_SEED", 1))

  # Runs a tree to its end, checks that its scheduler has nothing left, and returns the tree.
  def run_tree(random, **)
    tree = RandomTree.new(random)
    # Long, since no fiber may be abandoned.
    Heddle.run(grace: 60, **) do
      before = state_counts
      begin
        Heddle.await(tree.grow)
      rescue RandomTree::Failure
        nil
      end
      pass_until { tree.fibers.none?(&:alive?) && state_counts == before }
      expect(Fiber.scheduler.inspect).to match(/runnable=0 waiting=1 \(close: 1\)|runnable=1 waiting=0/)
    end
    tree
  end

  it "lose no fiber, run each ensure once, outlive no parent, and leave nothing behind", timeout: 120 do
    trees.times do |i|
      seed = first_seed + i
      tree = run_tree(Random.new(seed))

      expect(tree.ensured).to eq(tree.begun), "seed #{seed}: begun #{tree.begun}, ensured #{tree.ensured}"
      expect(tree.begun.values).to all(eq(1)), "seed #{seed}: begun #{tree.begun}"
      expect(tree.orphans).to eq([]), "seed #{seed}: #{tree.orphans} outlived their parents"
    rescue Watchdog::TimeLimitExceeded
      raise "seed #{seed} doesn't come to an end"
    end
  end

  # A fiber may be interrupted between any two instructions, before it has reached an `ensure`.
  it "come to an end, leaving nothing behind, if they are preempted anywhere", timeout: 120 do
    (trees / 3).times do |i|
      seed = first_seed + i
      tree = run_tree(Random.new(seed), preempt: :all, tick: 0.0001, quantum: 0.0002)

      expect(tree.fibers).to all(satisfy { |fiber| !fiber.alive? })
    rescue Watchdog::TimeLimitExceeded
      raise "seed #{seed} doesn't come to an end"
    end
  end

  it "leave nothing behind in several threads at once", timeout: 120 do
    seeds = Array.new(4) { |i| first_seed + (1_000_000 * i) }
    threads = seeds.map do |seed|
      Thread.new { Array.new(20) { |i| run_tree(Random.new(seed + i)) } }
    end

    expect(threads.flat_map(&:value)).to all(have_attributes(fibers: all(satisfy { |fiber| !fiber.alive? })))
  end
end
