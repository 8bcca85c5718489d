# frozen_string_literal: true

module Heddle
  # Where the program has made its Queues, which Ruby does not keep. A Queue notes it if it is made after the first
  # scheduler has begun to count times ({Accounting}). In a program that never counts, Queue is as Ruby has made it.
  module QueueOrigins
    FOLDER = File.expand_path("..", __dir__).freeze
    private_constant :FOLDER

    class << self
      # @param location [Thread::Backtrace::Location, nil]
      # @return [Boolean] not for Heddle's own
      def tells?(location) = location && !location.path.start_with?(FOLDER)

      # @return [void]
      def note_from_now_on
        [Thread::Queue, Thread::SizedQueue].each { |type| type.prepend(Noting) }
      end

      # @param queue [Thread::Queue]
      # @return [Array<String, nil>] the place, `app.rb:12`, and the name of the fiber, each if it is known
      def of(queue)
        location, name = Native.queue_origin(queue)
        ["#{location.path}:#{location.lineno}", name] if location
      end
    end

    # What Queue and SizedQueue do in addition.
    module Noting
      # Takes what Queue and SizedQueue take.
      def initialize(...)
        super
        location = caller_locations(1, 1)&.first
        Native.note_queue_origin(self, [location, Names.of(Fiber.current)].freeze) if QueueOrigins.tells?(location)
      end
    end
    private_constant :Noting
  end
  private_constant :QueueOrigins
end
