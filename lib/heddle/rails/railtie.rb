# frozen_string_literal: true

module Heddle
  module Rails
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
      Executors.install
      WebMount.install

      initializer "heddle.job_adapter", before: "active_job.set_configs" do
        if defined?(::ActiveJob)
          ::ActiveJob::QueueAdapters.autoload(:HeddleAdapter, "active_job/queue_adapters/heddle_adapter")
        end
      end

      initializer "heddle.isolation_level", after: :load_config_initializers do |app|
        Isolation.configure(app)
        config.after_initialize { Isolation.verify }
      end

      # Servers run this, and neither tasks nor the console do. It loads Active Record.
      server do |app|
        fibers = app.config.heddle.fibers
        if fibers && defined?(::ActiveRecord::Railtie)
          ConnectionPools.warnings(fibers).each { |text| Kernel.warn(text) }
        end
      end
    end
  end
end
