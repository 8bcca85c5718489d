# frozen_string_literal: true

module Heddle
  module PumaSupport
    # A request, from its arrival until the fibers that it has spun have ended.
    #
    # It is a scope: those fibers end before the connection's next request begins. And it is a unit of work: to the
    # application it is what a thread is in a server of threads.
    #
    # @api private
    class Request
      # @param client [::Puma::Client]
      # @param log_writer [#log, #unknown_error] Puma's
      # @param slow_requests [SlowRequests, nil]
      def initialize(client, log_writer, slow_requests)
        @client = client
        @log_writer = log_writer
        @slow_requests = slow_requests
        @name = RequestName.of(client.env)
      end

      # Names the current fiber, and runs the block, which handles the request. Then waits for the request's fibers. The
      # client has its answer by then.
      #
      # {Heddle.annotate} would restore the previous name, but a connection has none.
      #
      # Puma answers 500 to what the application raises. What is raised later, by the response's body or by
      # `rack.after_reply`, leaves Puma's method. On threads it ends that thread; Heddle takes an exit, or a
      # signal's exception, of a fiber for one of the thread.
      #
      # @yieldreturn [Object] Puma's outcome: what becomes of the connection
      # @return [Object, nil] the block's value. nil is an outcome of which Puma knows nothing, so it closes the
      #   connection
      def serve(&)
        FiberIsolation.ensure { |message| @log_writer.log("! #{message}") }
        fiber = Fiber.current
        Names.assign(fiber, @name)
        UnitOfWork.new.run { in_scope(&) }
      rescue SystemExit, SignalException => e
        @log_writer.log("! Heddle: #{@name} has raised #{e.inspect} after the application had returned, which ends " \
                        "its connection")
        nil
      ensure
        Names.assign(fiber, nil)
      end

      # The response has been sent. Another one must not follow, whatever is raised from now on.
      #
      # @return [void]
      def answered = @answered = true

      private

      # @return [Object] the block's value
      def in_scope(&)
        outcome = nil
        UnitOfWork.in_scope { outcome = handle(&) }
      rescue StandardError, ScriptError, NoMemoryError, SystemStackError => e
        raise unless @answered

        @log_writer.unknown_error(e, nil, "A fiber of #{@name}, or what was to be done after its response,")
        outcome
      end

      def handle(&)
        outcome = @slow_requests ? @slow_requests.watch(@name, &) : yield
        # The client need not wait for the request's fibers to see the end of its connection.
        case outcome
        when :close, false then @client.close # a Symbol since Puma 7.2, before that false
        end
        outcome
      end
    end

    # How a server on fibers handles requests.
    module Requests
      # Puma calls this for each request.
      #
      # If the client keeps the connection, Puma looks next whether a further request has arrived. The other connections
      # run before that. So no client gets one answer after the other while others wait for one. And a busy client has
      # mostly sent its next request by then: Puma reads it at once, and the connection need not wait in the kernel.
      #
      # @param arguments [Array] Puma's, the client being the last but one
      # @return [Object] Puma's: what becomes of the connection
      def handle_request(*arguments)
        connection = @thread_pool.connection(arguments[-2])
        connection.request = Request.new(arguments[-2], @log_writer, @slow_requests)
        outcome = connection.request.serve { super }
        case outcome
        when :keep_alive, true # a Symbol since Puma 7.2, before that true
          Fiber.scheduler.yield
        end
        outcome
      end

      private

      # Puma calls this to send the response, also to what it cannot parse.
      #
      # @param arguments [Array] Puma's, the client being the last
      # @return [Object] Puma's: what becomes of the connection
      def prepare_response(*arguments)
        super.tap { @thread_pool.connection(arguments.last).request&.answered }
      end
    end
    private_constant :Requests
  end
end
