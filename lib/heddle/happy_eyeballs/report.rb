# frozen_string_literal: true

module Heddle
  class HappyEyeballs
    # What went wrong last, and Ruby's error for it.
    class Report
      # A host and a service, as they were given.
      Place = Struct.new(:host, :service)
      private_constant :Place

      def initialize(remote, local)
        @remote = Place.new(*remote)
        @local = Place.new(*local)
        @place = @remote
      end

      # The system call that comes next.
      attr_writer :call

      # The next call is bind(2), and concerns the local address.
      def binding
        @call = "bind(2)"
        @place = @local
      end

      # It has succeeded.
      def bound = @place = @remote

      # A system call has failed.
      def failed(errno)
        @code = nil
        @errno = errno
      end

      # A look-up has failed: `EAI_NONAME` or the like, and an errno for `EAI_SYSTEM`.
      def unresolved(code, errno)
        @call = "getaddrinfo(3)"
        @code = code
        @errno = errno
      end

      # @return [Exception] for what went wrong last
      def error
        @code ? Scheduler.resolution_error(@call, @code, @errno) : system_call_error(@errno, @place)
      end

      # @return [Exception] no local address is of the remote one's family
      def family_error = system_call_error(Errno::EAFNOSUPPORT::Errno, @local)

      # @return [Exception] the time for all of it is up
      def timeout
        return Errno::ETIMEDOUT.new("user specified timeout") if RUBY_VERSION < "4.0"

        IO::TimeoutError.new("user specified timeout for #{@remote.host} port #{@remote.service}")
      end

      # @return [Exception] the time for the last address is up
      def last_timeout(address)
        return IO::TimeoutError.new("Connect timed out!") if RUBY_VERSION < "4.0"

        IO::TimeoutError.new("user specified timeout for #{address.inspect_sockaddr}")
      end

      private

      def system_call_error(errno, place)
        message = "#{@call} for #{place.host.inspect} port #{place.service}"
        # From Ruby 4.0 on it is one class, whether the time was the program's or the system's.
        return IO::TimeoutError.new(message) if errno == Errno::ETIMEDOUT::Errno && RUBY_VERSION >= "4.0"

        SystemCallError.new(message, errno)
      end
    end
    private_constant :Report
  end
end
