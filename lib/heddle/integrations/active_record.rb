# frozen_string_literal: true

module Heddle # :nodoc:
  # ActiveRecord with `isolation_level = :thread`, its default, has one connection for all fibers of a thread, and one
  # transaction: what a fiber has created is gone when another one rolls back. Nothing else tells of that.
  module ConnectionSharing
    MESSAGE = <<~TEXT
      Heddle: the fibers of a thread share one ActiveRecord connection, and its transaction, so a fiber's rollback undoes
      what others have written. Give each fiber a connection: config.active_support.isolation_level = :fiber (or, without
      Rails, ActiveSupport::IsolatedExecutionState.isolation_level = :fiber).
    TEXT
    private_constant :MESSAGE

    class << self
      # Called when a scheduler is made, and when one is closed: ActiveSupport may have come in between.
      def check
        @wanted = true
        return if @settled || !active_support?

        watch_loading
        warn_or_wait if active_record?
      end

      # Has ActiveSupport tell when ActiveRecord is there. Costs nothing if it never is.
      def watch_loading
        return if @watching || !active_support?

        @watching = true
        ::ActiveSupport.on_load(:active_record, yield: true) { ConnectionSharing.__send__(:warn_or_wait) }
      end

      private

      # Neither has anything loaded by asking.
      def active_support?
        defined?(::ActiveSupport) && ::ActiveSupport.respond_to?(:on_load)
      end

      def active_record?
        defined?(::ActiveRecord) && !::ActiveRecord.autoload?(:Base) && ::ActiveRecord.const_defined?(:Base)
      end

      # Rails sets what the application has configured when all is initialized.
      def warn_or_wait
        return if @settled || !@wanted

        application = ::Rails.application if defined?(::Rails) && ::Rails.respond_to?(:application)
        if application.respond_to?(:initialized?) && !application.initialized?
          ::ActiveSupport.on_load(:after_initialize, yield: true) { |app| ConnectionSharing.__send__(:warn_once, app) }
        else
          warn_once
        end
      end

      def warn_once(application = nil)
        return if @settled

        @settled = true
        # Older ones have no such setting.
        return unless ::ActiveSupport.const_defined?(:IsolatedExecutionState)

        level = configured_level(application) || ::ActiveSupport::IsolatedExecutionState.isolation_level
        warn(MESSAGE) if level == :thread
      end

      # Rails takes this away when it has set it.
      def configured_level(application)
        application.config.active_support.isolation_level if application
      end
    end
  end
  private_constant :ConnectionSharing

  # Has {ConnectionSharing} look.
  module ConnectionCheck
    # Makes the scheduler; see {Scheduler#initialize}.
    def initialize(...)
      super
      ConnectionSharing.check
    end

    # @api private
    def scheduler_close
      ConnectionSharing.check
      super
    end
  end
  private_constant :ConnectionCheck

  Scheduler.prepend(ConnectionCheck)
  ConnectionSharing.watch_loading
end
