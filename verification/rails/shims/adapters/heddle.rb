# frozen_string_literal: true

# Active Job's tests run with the adapter `:heddle` by this. They expect of the adapter `:async` that a job, also one
# for later, has ended when `perform_later` returns, and that this raises the job's error.

require "English"
require "active_job/queue_adapters/heddle_adapter"

module Torture
  # Waits for each job.
  module AwaitedJobs
    # For each time that a job was enqueued, the error of its run, or nil.
    ENDED = Hash.new { |ended, id| ended[id] = Queue.new }

    # Says that a job has ended.
    module Base
      def execute(data)
        super
      ensure
        ENDED[data["provider_job_id"]].push($ERROR_INFO)
      end
    end

    def enqueue_at(job, _timestamp) = enqueue(job)

    private

    def submit(queue, data)
      super
      error = ENDED[data["provider_job_id"]].pop
      raise error if error
    end
  end
end

ActiveJob::Base.singleton_class.prepend(Torture::AwaitedJobs::Base)
ActiveJob::QueueAdapters::HeddleAdapter.prepend(Torture::AwaitedJobs)
ActiveJob::Base.queue_adapter = :heddle
