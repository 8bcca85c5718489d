# frozen_string_literal: true

module Heddle
  # An object of which each process has its own: what it holds, such as threads and waits, does not exist in a forked
  # child. It is made when it is first used, and once, even if several threads and fibers ask for it then. Making it
  # takes a lock, which a signal handler cannot: what signal handlers use is made before, by a first {get}.
  class PerProcess
    # @yield makes the object, without waiting
    def initialize(&make)
      @make = make
      @guard = Guard.new
    end

    # @return [Object] this process's object
    def get
      return @object if @generation == Native.generation

      @guard.synchronize do
        @object = @make.call unless @generation == Native.generation
        # Last: until then, the process's other threads and fibers wait here.
        @generation = Native.generation
        @object
      end
    end
  end
  private_constant :PerProcess
end
