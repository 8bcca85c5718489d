# frozen_string_literal: true

module Heddle
  class Executor
    # Passes the errors that end tasks to `Concurrent.global_logger`, as concurrent-ruby's pools do by a private method.
    module ErrorLog
      # As in `Logger::Severity`.
      DEBUG = 0
      ERROR = 3
      private_constant :DEBUG, :ERROR

      class << self
        # @param error [StandardError]
        # @return [void]
        def debug(error) = log(DEBUG, error)

        # @param error [Exception]
        # @return [void]
        def error(error) = log(ERROR, error)

        private

        def log(level, error)
          Concurrent.global_logger.call(level, error, nil)
        rescue StandardError => e
          Kernel.warn("Heddle::Executor: Concurrent.global_logger raised #{e.inspect} and lost #{error.inspect}")
        end
      end
    end
    private_constant :ErrorLog
  end
end
