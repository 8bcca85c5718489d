# frozen_string_literal: true

module Heddle
  module PumaSupport
    # The thread of a server's requests. On threads, `Thread.current.kill` in a request ends the thread of that request.
    # Here all requests share this thread, so it ends the calling fiber instead: `ensure` clauses run, and the client's
    # connection is closed without an answer.
    #
    # @api private
    class ServerThread < HostThread
      # Ends the thread itself.
      alias end_server kill

      # `Thread.exit` and `Thread.kill` call no method of the thread.
      module Ends
        # Ends the calling thread; see Ruby's documentation.
        def exit
          current.is_a?(ServerThread) ? current.kill : super
        end

        # Ends the thread; see Ruby's documentation.
        def kill(thread)
          thread.is_a?(ServerThread) ? thread.kill : super
        end
      end

      ::Thread.singleton_class.prepend(Ends)

      # @param server [::Puma::Server]
      # @param name [String]
      # @yield runs on the thread
      def initialize(server, name)
        super() do
          ::Puma.set_thread_name(name)
          # Puma 6 has this accessor on each thread of its pool; later versions set it there, too.
          self.puma_server = @server = server
          yield
        end
      end

      # Ends the calling fiber, or, if another thread calls this, the thread.
      #
      # @return [Thread]
      # @raise [ThreadError] in a fiber that another one has resumed, such as an Enumerator's: that one would continue
      def kill
        return super unless equal?(::Thread.current)

        fiber = Fiber.current
        request = Names.of(fiber) || fiber.inspect
        unless ends_request?(fiber)
          # The thread's own `raise` is another method.
          Kernel.raise ThreadError, "Thread#kill: #{request} was resumed by another fiber, which would continue"
        end

        @server.log_writer.log("! Heddle: #{request} has called Thread#kill, which ends its fiber without an answer")
        fiber.kill
        # The fiber was being killed already.
        self
      end
      alias exit kill
      alias terminate kill

      # Raises in the calling fiber. If another thread calls this that a request has started, it raises in the fiber of
      # that request, as such a thread takes this one for the request's alone. What other threads raise is for the root
      # fiber, and stops the server.
      #
      # @return [nil]
      def raise(*arguments, **)
        unit = UnitOfWork.current
        return super if equal?(::Thread.current) || !unit&.thread.equal?(self)

        unless unit.raise(*arguments, **)
          @server.log_writer.log("! Heddle: a thread that a request has started has called Thread#raise with " \
                                 "#{arguments.inspect} after that request's end: nothing is raised")
        end
        nil
      end

      private

      # A fiber that the scheduler runs, or, with Puma's option fiber_per_request, that Puma has resumed.
      def ends_request?(fiber)
        scheduler = Fiber.scheduler
        (scheduler && Native.current_fiber(scheduler).equal?(fiber)) || @server.with_application?(fiber)
      end
    end
  end
end
