# frozen_string_literal: true

module Heddle
  class HappyEyeballs
    # Records the most recent failure, and makes the error that Ruby raises for it.
    class Report
      # A host and a service, as the program passed them.
      Place = Struct.new(:host, :service)
      private_constant :Place

      def initialize(remote, local)
        @remote = Place.new(*remote)
        @local = Place.new(*local)
        @place = @remote
      end

      # @return [String] the next system call, such as "connect(2)"
      attr_writer :call

      # The next system call is bind(2), on the local address.
      def binding
        @call = "bind(2)"
        @place = @local
      end

      # bind(2) has succeeded.
      def bound = @place = @remote

      # A system call has failed.
      #
      # @param errno [Integer]
      def failed(errno)
        @code = nil
        @errno = errno
      end

      # A look-up has failed.
      #
      # @param code [Integer] `EAI_NONAME` or the like
      # @param errno [Integer] the reason if the code is `EAI_SYSTEM`
      def unresolved(code, errno)
        @call = "getaddrinfo(3)"
        @code = code
        @errno = errno
      end

      # @return [Exception] for the most recent failure
      def error
        return system_call_error(@errno, @place) unless @code

        Native.resolution_error(@call, @code, @errno)
      end

      # @return [Exception] if no local address has the remote address's family
      def family_error = system_call_error(Errno::EAFNOSUPPORT::Errno, @local)

      # @return [Exception] if the timeout for everything has passed
      def timeout
        return Errno::ETIMEDOUT.new("user specified timeout") if RUBY_VERSION < "4.0"

        IO::TimeoutError.new("user specified timeout for #{@remote.host} port #{@remote.service}")
      end

      # @return [Exception] if the last attempt has timed out
      def last_timeout(address)
        return IO::TimeoutError.new("Connect timed out!") if RUBY_VERSION < "4.0"

        IO::TimeoutError.new("user specified timeout for #{address.inspect_sockaddr}")
      end

      private

      def system_call_error(errno, place)
        message = "#{@call} for #{place.host.inspect} port #{place.service}"
        # From Ruby 4.0 on the class is the same for the program's timeout and the system's.
        return IO::TimeoutError.new(message) if errno == Errno::ETIMEDOUT::Errno && RUBY_VERSION >= "4.0"

        SystemCallError.new(message, errno)
      end
    end
    private_constant :Report
  end
end
