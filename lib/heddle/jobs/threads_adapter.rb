# frozen_string_literal: true

module Heddle
  module Jobs
    # The Active Job adapter `:heddle` where Heddle cannot run: jobs run in this process, on Active Job's threads.
    class ThreadsAdapter < ActiveJob::QueueAdapters::AsyncAdapter
      # @param ** [Hash] the options of the adapter, which say nothing about threads
      def initialize(**) = super()
    end
  end
end
