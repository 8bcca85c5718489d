# frozen_string_literal: true

module Heddle
  module Puma
    # Makes a Puma server handle its requests on fibers, if its options have {Settings}. The server's thread gets a
    # scheduler; the acceptor and each connection are fibers of it.
    #
    # @api private
    module Server
      # @param background [Boolean]
      # @param thread_name [String]
      # @return [Thread] the server's thread
      def run(background = true, thread_name: "srv") # rubocop:disable Style/OptionalBooleanParameter -- Puma's signature
        settings = Settings.of(options)
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

      # Puma calls this for each request. Names the fiber while it serves the request.
      #
      # If the client keeps the connection, Puma looks next whether a further request has arrived. The other connections
      # run before that. So no client gets one answer after the other while others wait for one. And a busy client has
      # mostly sent its next request by then: Puma reads it at once, and the connection need not wait in the kernel.
      #
      # @param arguments [Array] Puma's, the client being the last but one
      # @return [Object] Puma's: what becomes of the connection
      def handle_request(*arguments)
        return super unless @thread_pool.is_a?(FiberPool)

        outcome = name_fiber(arguments[-2].env) { super }
        Fiber.scheduler.yield if KEPT.include?(outcome)
        outcome
      end

      # Seconds that a write to the pipe may take.
      WRITE_TIME = 1
      # What `handle_request` returns if the connection is kept: a Symbol since Puma 7.2, before that true.
      KEPT = [:keep_alive, true].freeze
      private_constant :WRITE_TIME, :KEPT

      private

      # {Heddle.annotate} would restore the previous name, but a connection has none.
      def name_fiber(env)
        fiber = Fiber.current
        Names.assign(fiber, "#{env["REQUEST_METHOD"]} #{env["REQUEST_PATH"] || env["PATH_INFO"]}".freeze)
        yield
      ensure
        Names.assign(fiber, nil)
      end

      def prepare_fibers(settings, name)
        @min_threads = 0
        @max_threads = settings.fibers
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
        Thread.new do
          ::Puma.set_thread_name(name)
          # Puma 6 has this accessor on each thread of its pool; later versions set it there, too.
          Thread.current.puma_server = self
          Fiber.set_scheduler(settings.make_scheduler)
          Fiber.schedule { accept_until_stopped }
        end
      end

      def accept_until_stopped
        @thread_pool.start
        handle_servers
      ensure
        # Ends the fibers that the application has left, as the end of the process ends its threads.
        Thread.current.kill
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

Puma::Server.prepend(Heddle::Puma::Server)
