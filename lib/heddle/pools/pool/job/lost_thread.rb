# frozen_string_literal: true

module Heddle
  class Pool
    class Job
      # What happens to a job whose thread is killed: if it has begun, it ends with an error, and else it waits for
      # another thread.
      module LostThread
        # @api private
        # The thread that has taken the job is being killed, and has not begun it.
        def untaken
          @state = :pending
          @task = nil
        end

        private

        # Whether the job ends because its thread is being killed.
        def lost?
          !@returned && !@stopped && Thread.current.status == "aborting"
        end

        def lost_error
          ThreadError.new("#{inspect}: its thread was killed")
        end
      end
      private_constant :LostThread
    end
  end
end
