# frozen_string_literal: true

module Heddle # :nodoc:
  # Warns, once, if the fibers of a thread share one ActiveRecord connection. With `isolation_level = :thread`, the
  # default, they also share its transaction: a fiber's rollback undoes what other fibers have written. ActiveRecord
  # does not report that.
  module ConnectionSharing
    MESSAGE = <<~TEXT
      Heddle: the fibers of a thread share one ActiveRecord connection, and its transaction, so a fiber's rollback undoes
      what others have written. Give each fiber a connection: config.active_support.isolation_level = :fiber (or, without
      Rails, ActiveSupport::IsolatedExecutionState.isolation_level = :fiber).
    TEXT
    private_constant :MESSAGE

    class << self
      # Called when a scheduler is made, and when it is closed, because ActiveSupport may be loaded in between.
      def check
        @scheduler_made = true
        return if @checked || !active_support?

        watch_loading
        warn_or_wait if active_record?
      end

      # Makes ActiveSupport call back when ActiveRecord is loaded. Without ActiveSupport this does nothing.
      def watch_loading
        return if @watching_loading || !active_support?

        @watching_loading = true
        ::ActiveSupport.on_load(:active_record, yield: true) { warn_or_wait }
      end

      private

      # These two methods do not trigger an autoload. A program's tests may put an object in a library's place.
      def active_support?
        defined?(::ActiveSupport) && ::ActiveSupport.respond_to?(:on_load)
      end

      def active_record?
        defined?(::ActiveRecord) && ::ActiveRecord.is_a?(Module) && !::ActiveRecord.autoload?(:Base) &&
          ::ActiveRecord.const_defined?(:Base)
      end

      # Rails applies the application's setting at the end of its initialization. Until then, the warning must wait.
      def warn_or_wait
        return if @checked || !@scheduler_made

        application = ::Rails.application if defined?(::Rails) && ::Rails.respond_to?(:application)
        if application.respond_to?(:initialized?) && !application.initialized?
          ::ActiveSupport.on_load(:after_initialize, yield: true) { |app| warn_once(app) }
        else
          warn_once
        end
      end

      def warn_once(application = nil)
        return if @checked

        @checked = true
        # Older versions of ActiveSupport have no such setting.
        return unless ::ActiveSupport.const_defined?(:IsolatedExecutionState)

        level = configured_level(application) || ::ActiveSupport::IsolatedExecutionState.isolation_level
        warn(MESSAGE) if level == :thread
      end

      # The application's setting; Rails removes it once it is applied.
      def configured_level(application)
        application.config.active_support.isolation_level if application
      end
    end
  end
  private_constant :ConnectionSharing

  ConnectionSharing.watch_loading
end
