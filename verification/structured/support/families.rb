# frozen_string_literal: true

require_relative "explored_case"
require_relative "family"

# Each verb of a parent beside each verb of its child, under all schedules with at most two preemptions. What holds is
# what docs/structured-concurrency.md says: no fiber is left, no error is lost or raised twice, and no value is wrong.
module Families
  # Where fibers end, wait for each other and get errors, and the verbs below. More points would be more
  # schedules than can all be tried: the pairs of operations have them.
  POINTS = [__FILE__, *%w[await children scope task_wait tree_node].map do |name|
    File.expand_path("../../../lib/heddle/structured/#{name}.rb", __dir__)
  end].freeze
  private_constant :POINTS

  # @!attribute [r] block
  #   @return [Proc] what the parent does; it gets the {Family}
  # @!attribute [r] quiet
  #   @return [Array] its possible values, if the child does not fail; `:child` stands for the child's value
  # @!attribute [r] loud
  #   @return [Array] its possible values, and messages of its errors, if the child fails
  # @!attribute [r] stopped
  #   @return [Boolean] whether the program stops it
  Parent = Data.define(:block, :quiet, :loud, :stopped) do
    def initialize(block:, quiet:, loud:, stopped: false) = super
  end

  # @!attribute [r] block
  #   @return [Proc] what the child does; it gets the {Family}
  # @!attribute [r] fails
  #   @return [Boolean, nil] whether it fails, unless it is stopped before; nil if the end of a block stops it
  # @!attribute [r] value
  #   @return [Object]
  # @!attribute [r] others
  #   @return [Array] further possible values of the parent
  # @!attribute [r] options
  #   @return [Hash] of {Heddle.spin}
  Child = Data.define(:block, :fails, :value, :others, :options) do
    def initialize(block:, fails: false, value: :child, others: [], options: {}) = super
  end

  FAIL = ->(name) { raise Expected, name }

  PARENTS = {
    "returns" => Parent.new(->(family) { family.start_child && :parent }, [:parent], %w[child]),
    "awaits it" => Parent.new(->(family) { family.start_child.await }, [:child], %w[child]),
    "rescues its error" => Parent.new(
      lambda do |family|
        family.start_child.await
      rescue Expected
        :rescued
      end, [:child], [:rescued]
    ),
    "stops it" => Parent.new(->(family) { family.start_child.stop && :parent }, [:parent], [:parent, "child"]),
    "stops and awaits it" => Parent.new(->(family) { family.start_child.stop.await }, [:child, nil], [nil, "child"]),
    "raises" => Parent.new(->(family) { family.start_child && FAIL["parent"] }, %w[parent], %w[parent]),
    "is stopped" => Parent.new(->(family) { family.start_child && sleep }, [nil], [nil, "child"], true),
    "has a time limit" => Parent.new(
      ->(family) { Heddle.cancel_after(1, Expected.new("limit")) { family.start_child && sleep } },
      %w[limit], %w[limit child]
    ),
    # The limit's exception may take the place of the child's error while that leaves Heddle.await.
    "awaits it for a time" => Parent.new(
      ->(family) { Heddle.move_on_after(1, value: :late) { family.start_child.await } },
      %i[child late], ["child", :late]
    ),
    "starts one more, which raises" => Parent.new(
      ->(family) { family.start_child && family.spin { FAIL["sibling"] } && :parent }, %w[sibling], %w[sibling child]
    ),
    "starts it in a scope" => Parent.new(
      ->(family) { Heddle.run { family.start_child } && :parent }, [:parent], %w[child]
    )
  }.freeze

  BACKGROUND = { background: true }.freeze
  CHILDREN = {
    "ends" => Child.new(->(_) { :child }),
    "ends with the limit" => Child.new(->(_) { sleep(1) && :child }),
    "raises" => Child.new(->(_) { FAIL["child"] }, true),
    "raises with the limit" => Child.new(->(_) { sleep(1) && FAIL["child"] }, true),
    "raises however it ends" => Child.new(
      lambda do |_|
        sleep 1
      ensure
        FAIL["child"]
      end, true
    ),
    "has a time limit" => Child.new(->(_) { Heddle.cancel_after(1, Expected.new("child")) { sleep } }, true),
    "starts a grandchild" => Child.new(->(family) { family.spin { sleep 1 } && :child }),
    "starts a grandchild that raises" => Child.new(->(family) { family.spin { FAIL["child"] } }, true),
    "is in the background" => Child.new(block: ->(_) { sleep(1) && :child }, options: BACKGROUND),
    "is in the background and raises" => Child.new(block: ->(_) { FAIL["child"] }, fails: nil, options: BACKGROUND),
    "stops itself" => Child.new(block: ->(_) { Fiber.current.stop && sleep }, value: nil),
    "stops its parent" => Child.new(block: ->(family) { family.parent.stop && :child }, others: [nil])
  }.freeze

  class << self
    # @return [Array<ExploredCase>]
    def cases
      PARENTS.to_a.product(CHILDREN.to_a).filter_map do |(verb, parent), (child_verb, child)|
        # Four fibers have too many schedules.
        next if verb.start_with?("starts one more") && child_verb.start_with?("starts a grandchild")

        name = "a child #{child_verb}; its parent #{verb}"
        possible = outcomes(parent, child)
        ExploredCase.new("families", name, preemptions: 2, all_in: POINTS) do
          Heddle.without_preemption { live(parent, child, possible) }
        end
      end
    end

    private

    def outcomes(parent, child)
      quiet = parent.quiet.map { |value| value == :child ? child.value : value }
      { false => quiet, true => parent.loud, nil => quiet + parent.loud }.fetch(child.fails) + child.others
    end

    # The program's own steps are not what is explored.
    def live(parent, child, possible)
      family = Family.new(parent, child)
      outcome = family.outcome(parent.stopped)
      raise "#{outcome.inspect} is none of #{possible}" unless possible.include?(outcome)

      family.check_ends
      # An error would be raised here for the second time.
      sleep 3
    end
  end
end
