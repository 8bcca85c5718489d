# frozen_string_literal: true

module Heddle
  module PumaSupport
    # rack-timeout raises into the thread that runs a request, from a thread of its own. Here it raises into the
    # request's fiber. All its settings, states and observers stay.
    #
    # @api private
    module RackTimeout
      # Raised at the start of a server whose rack-timeout is built in another way.
      class Unknown < Error; end

      # @return [void]
      # @raise [Unknown]
      def self.install
        timeout = ::Rack::Timeout.const_get(:Scheduler)::Timeout
        refuse unless timeout.instance_method(:timeout).parameters.map(&:first) == %i[req block]
        timeout.prepend(self)
      rescue NameError
        refuse
      end

      # @raise [Unknown]
      def self.refuse
        version = ::Gem.loaded_specs["rack-timeout"]&.version
        raise Unknown, "rack-timeout #{version} raises into the thread of a request, which under plugin :heddle is " \
                       "that of all requests, and Heddle cannot change that: it knows rack-timeout 0.6.3 and 0.7.0. " \
                       "Take one of them, or replace the middleware by one that calls " \
                       "Timeout.timeout(15) { app.call(env) }"
      end
      private_class_method :refuse

      # @param seconds [Numeric, nil]
      # @return [Object] the block's value
      # @raise what rack-timeout raises, if the time elapses
      def timeout(seconds, &)
        return super if seconds.nil? || seconds.zero? || !::Thread.current.is_a?(ServerThread)

        request = Interruptible.new
        job = @scheduler.run_in(seconds) { @on_timeout.call(request) }
        request.run(&)
      ensure
        job&.cancel!
      end
    end
  end
end
