# frozen_string_literal: true

module Heddle # :nodoc:
  # How many items {Heddle.map} works on at a time unless the program says otherwise.
  MAP_LIMIT = 10
  private_constant :MAP_LIMIT

  class << self
    # Calls the block with each item, each time in a fiber of its own, and so with several items at a time. An item is
    # taken only when there is a fiber for it, so the enumerable may be lazy, or endless until the block raises.
    #
    # It is a {run} of its own: it works with and without a scheduler, and all its fibers have ended when it returns.
    #
    # @param enumerable [#each]
    # @param limit [Integer] how many items at a time
    # @yieldparam item [Object]
    # @return [Array<Object>] the block's values, in the order of the items
    # @raise the first error. The other fibers are stopped first, and have ended when it is raised.
    # @raise [ArgumentError] without a block, or for a limit below one
    # @raise [TypeError] for a limit that is not an Integer, or an argument without `each`
    # @example
    #   pages = Heddle.map(urls, limit: 20) { |url| fetch(url) }
    def map(enumerable, limit: MAP_LIMIT, &block)
      ArgumentChecks.block(block, "Heddle.map")
      ArgumentChecks.count(limit, "Heddle.map: limit")
      raise TypeError, "Heddle.map: #{enumerable.inspect} has no method each" unless enumerable.respond_to?(:each)

      permits = Semaphore.new(limit)
      values = []
      run { enumerable.each { |*item| map_item(item, permits, values, block) } }
      values
    end

    # Runs the blocks, each in a fiber of its own, and returns the value of the one that ends first. The others are
    # stopped, and have ended when it returns.
    #
    # It is a {run} of its own: it works with and without a scheduler.
    #
    # @param blocks [Array<#call>]
    # @return [Object] the value of the block that ends first
    # @raise the error of the block that ends first, if an error ends it
    # @raise [ArgumentError] without blocks
    # @raise [TypeError] for an argument without `call`
    # @example The faster of two servers
    #   Heddle.race(-> { fetch(first) }, -> { fetch(second) })
    def race(*blocks)
      raise ArgumentError, "Heddle.race needs at least one block" if blocks.empty?

      strange = blocks.find { |block| !block.respond_to?(:call) }
      raise TypeError, "Heddle.race: #{strange.inspect} has no method call: write -> { } around it" if strange

      run { first_value(blocks) }
    end

    private

    def map_item(item, permits, values, block)
      permits.acquire
      index = values.size
      values << nil
      spin do
        values[index] = block.call(*item)
      ensure
        permits.release
      end
    end

    def first_value(blocks)
      without_preemption do
        tasks = blocks.map { |block| spin(background: true) { block.call } }
        _, wait = wait_for_fibers(tasks, "Heddle.race")
        wait.until(&:first)
        wait.first.error ? raise(wait.first.error) : wait.first.value
      end
    end
  end
end
