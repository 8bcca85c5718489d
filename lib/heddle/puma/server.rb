# frozen_string_literal: true

module Heddle
  module PumaSupport
    # Makes a Puma server handle its requests on fibers, if its options have {Settings}. The server's thread gets a
    # scheduler; the acceptor and each connection are fibers of it.
    #
    # @api private
    module Server
      # @param background [Boolean]
      # @param thread_name [String]
      # @return [Thread] the server's thread
      def run(background = true, thread_name: "srv") # rubocop:disable Style/OptionalBooleanParameter -- Puma's signature
        # Puma's control server has none.
        settings = options[:heddle]
        return super unless settings

        BasicSocket.do_not_reverse_lookup = true
        events.fire(:state, :booting)
        @status = :run
        prepare_fibers(settings, thread_name)
        @check, @notify = ::Puma::Util.pipe unless @notify
        events.fire(:state, :running)
        @thread = start_thread(settings, thread_name)
        background ? @thread : @thread.join
      end

      # Puma calls this in the acceptor when the pipe of {#notify_safely} is readable. When the server is to stop, it
      # closes the pipe next. Ruby 3.3 and 3.4 would wait for ever then if a signal handler had not yet left its write.
      #
      # @return [Boolean] whether the server is to stop
      def handle_check
        super.tap { |stops| @written&.pop(timeout: WRITE_TIME) if stops }
      end

      # @return [Boolean] see {FiberPool#with_application?}
      def with_application?(fiber) = @thread_pool.with_application?(fiber)

      # Seconds that a write to the pipe may take.
      WRITE_TIME = 1
      private_constant :WRITE_TIME

      private

      def prepare_fibers(settings, name)
        FiberIsolation.ensure { |message| @log_writer.log("! #{message}") }
        RackTimeout.install if ::Object.const_defined?("Rack::Timeout")
        @min_threads = 0
        @max_threads = settings.fibers
        @slow_requests = settings.slow && SlowRequests.new(settings.slow, @log_writer)
        # After Puma's module for `fiber_per_request`, so that a request is served by its connection's fiber.
        singleton_class.prepend(Requests)
        # Since Puma 8 the method takes the thread, too.
        takes_thread = method(:process_client).arity == 2
        pool = FiberPool.new(name, options, settings, **pool_options) do |connection, client|
          takes_thread ? process_client(connection, client) : process_client(client)
        end
        @thread_pool = pool
        @written = Thread::Queue.new
        @reactor = Reactor.new(pool) { |client| reactor_wakeup(client) } if @queue_requests
      end

      # Puma 6 has no such parameter.
      def pool_options
        named = ::Puma::ThreadPool.instance_method(:initialize).parameters.assoc(:key)
        named ? { server: self } : {}
      end

      def start_thread(settings, name)
        ServerThread.new(self, name) do
          Fiber.set_scheduler(settings.make_scheduler)
          run_fibers
        end
      end

      def accept_until_stopped
        @thread_pool.start
        handle_servers
      ensure
        # Ends the fibers that the application has left, as the end of the process ends its threads.
        @thread.end_server
      end

      # Runs the fibers until the acceptor ends. What another thread raises in this thread, and no fiber but the root
      # receives, stops the server first, so that the other requests are answered. Requests may be under way before the
      # acceptor first waits.
      def run_fibers
        Fiber.schedule(storage: true) { accept_until_stopped }
        Fiber.scheduler.run
      rescue Exception => e # rubocop:disable Lint/RescueException -- raised again
        raised = e
        @log_writer.log("! Heddle: another thread has raised #{e.inspect} in the thread of all requests, which stops " \
                        "the server. Requests under way: #{@thread_pool.requests.join(", ")}")
        stop
        Fiber.scheduler.run
      ensure
        raise raised if raised
      end

      # Puma calls this when the server is to stop, also in signal handlers: it writes to a pipe that the acceptor
      # reads.
      def notify_safely(message)
        super
      ensure
        @written&.push(nil)
        @thread_pool.stop_accepting if @thread_pool.is_a?(FiberPool)
      end
    end
  end
end
