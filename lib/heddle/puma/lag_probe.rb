# frozen_string_literal: true

module Heddle
  module Puma
    # Measures how late fibers run: a fiber sleeps for a while, again and again, and compares the clock.
    #
    # @api private
    class LagProbe
      # Seconds.
      INTERVAL = 0.25
      private_constant :INTERVAL

      def initialize
        @max = 0
      end

      # @return [Integer] microseconds: by how much, at most, the fiber was late since the last call
      def take_max
        max = @max
        @max = 0
        max
      end

      # Starts the fiber.
      def start
        @fiber = Fiber.schedule { loop { measure } }
      end

      # Ends it.
      def stop
        @fiber.kill
      end

      private

      def measure
        due = Context.now + INTERVAL
        sleep INTERVAL
        late = ((Context.now - due) * 1_000_000).to_i
        @max = late if late > @max
      end
    end
  end
end
