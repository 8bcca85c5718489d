# frozen_string_literal: true

module Heddle
  module RailsSupport
    # What `require "heddle/rails"` leaves to an application where Heddle cannot run: its settings mean nothing, and
    # jobs run on threads.
    class Railtie < ::Rails::Railtie
      config.heddle = ActiveSupport::OrderedOptions.new

      initializer "heddle.job_adapter", before: "active_job.set_configs" do
        if defined?(::ActiveJob)
          ::ActiveJob::QueueAdapters.autoload(:HeddleAdapter, "active_job/queue_adapters/heddle_adapter")
        end
      end
    end
  end
end
