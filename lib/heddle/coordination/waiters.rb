# frozen_string_literal: true

module Heddle
  # The waits for an object, the oldest first. In a forked child it begins empty: its parent's fibers and threads do
  # not exist there, and must not be given what a fiber of the child waits for. Its owner calls it with its guard.
  class Waiters
    def initialize
      @generation = Native.generation
      @list = []
    end

    # Appends a waiter.
    def <<(waiter) = list << waiter

    # @return [Object, nil] the oldest waiter, which is removed
    def shift = list.shift

    # @return [Object, nil] the waiter, if it was in the list
    def delete(waiter) = list.delete(waiter)

    # @return [Integer]
    def size = list.size

    # @return [Boolean]
    def empty? = list.empty?

    private

    def list
      return @list if @generation == Native.generation

      @generation = Native.generation
      @list = []
    end
  end
  private_constant :Waiters
end
