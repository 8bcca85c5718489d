# frozen_string_literal: true

module Heddle
  module RailsSupport
    # Prepares a Rails application for fibers; `require "heddle/rails"` in config/application.rb loads it.
    #
    # `config.heddle.fibers` is the number of fibers that may ask for a database connection at the same time (512, which
    # is what the Puma plugin starts); nil turns the check of the connection pools off.
    class Railtie < ::Rails::Railtie
      config.heddle = ActiveSupport::OrderedOptions.new
      config.heddle.fibers = 512

      Interlock.install
      RequestContext.install
      Live.install
      Cable.install
      WebMount.install

      initializer "heddle.job_adapter", before: "active_job.set_configs" do
        if defined?(::ActiveJob)
          ::ActiveJob::QueueAdapters.autoload(:HeddleAdapter, "active_job/queue_adapters/heddle_adapter")
        end
      end

      # Puma raises this in the requests that still run when `force_shutdown_after` has elapsed. Rails would rescue it
      # as any other error, and answer 500.
      initializer "heddle.force_shutdown", before: "action_dispatch.configure" do |app|
        responses = app.config.action_dispatch.rescue_responses if app.config.respond_to?(:action_dispatch)
        responses["Puma::ThreadPool::ForceShutdown"] ||= :service_unavailable if responses
      end

      initializer "heddle.isolation_level", after: :load_config_initializers do |app|
        Isolation.configure(app)
        config.after_initialize { Isolation.verify }
      end

      # Servers run this, and neither tasks nor the console do. It loads Active Record.
      server do |app|
        fibers = app.config.heddle.fibers
        if fibers && Object.const_defined?("ActiveRecord::Railtie")
          ConnectionPools.warnings(fibers).each { |text| Kernel.warn(text) }
        end
      end
    end
  end
end
