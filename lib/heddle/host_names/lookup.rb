# frozen_string_literal: true

module Heddle
  # Decides which look-ups the hook `address_resolve` can answer, and runs the others in a thread.
  #
  # Ruby passes the hook a host and gets back addresses, which Ruby parses again. So the hook cannot answer for named
  # services, scopes, canonical names and the like, and there is no hook for reverse look-ups. In these cases Ruby's own
  # method runs in a thread, while the fiber waits. `patches/host_names.rb` lists the methods that use this module.
  module HostNames
    PORTS = (0..65_535)
    # Flags that do not change the addresses that the hook finds.
    HARMLESS_FLAGS = Socket::AI_PASSIVE | Socket::AI_NUMERICHOST | Socket::AI_NUMERICSERV
    NUMERIC_FLAGS = Socket::NI_NUMERICHOST | Socket::NI_NUMERICSERV
    # How many look-ups run in threads at a time. One lasts half a minute if no server responds. Further fibers wait.
    MAX_THREADS = 64
    # A parent's fibers never give theirs back in its forked child.
    PERMITS = PerProcess.new { Semaphore.new(MAX_THREADS) }
    # Whether Ruby limits the time of a look-up by itself.
    LIMITS_WAITS = RUBY_VERSION >= "4.0"
    private_constant :PORTS, :LIMITS_WAITS, :HARMLESS_FLAGS, :NUMERIC_FLAGS, :MAX_THREADS, :PERMITS

    class << self
      # @return [Boolean] whether the current fiber runs under a Heddle scheduler
      def scheduled? = Fiber.current_scheduler.is_a?(Scheduler)

      # For `getaddrinfo`.
      #
      # @param arguments [Array] host, service, family, socket type, protocol, flags, reverse look-up
      # @param options [Hash]
      # @yield Ruby's own method, which calls the hook
      # @return [Object] the block's value
      def address_list(arguments, options, &)
        host, service, *details = arguments
        return in_thread(&) if beyond_hook?(host, service) || (host && special?(host, details, options))

        begin
          yield
        rescue Socket::ResolutionError => e
          raise unless host && no_match?(e, details)

          in_thread(&)
        end
      end

      # For methods that look up one address.
      #
      # @yield Ruby's own method, which calls the hook
      # @return [Object] the block's value
      def address(host, service, &) = beyond_hook?(host, service) ? in_thread(&) : yield

      # For methods that look up a host's name unless `flags` ask for numbers.
      #
      # @yield Ruby's own method
      # @return [Object] the block's value
      def unless_numeric(flags, &)
        flags.is_a?(Integer) && flags & NUMERIC_FLAGS == NUMERIC_FLAGS ? yield : in_thread(&)
      end

      # For methods that look up the name of a socket's address if `reverse_lookup` says so.
      #
      # @yield Ruby's own method
      # @return [Object] the block's value
      def socket_address(socket, reverse_lookup, &)
        reverse?(reverse_lookup, socket.do_not_reverse_lookup) ? in_thread(&) : yield
      end

      # @return [Boolean] whether the hook lacks what it needs for an answer: the scope, or the service's name. Also for
      #   a host that Ruby is to convert, once, and for one whose bytes are not ASCII's
      def beyond_hook?(host, service)
        return host.respond_to?(:to_str) unless host.is_a?(String)

        !host.encoding.ascii_compatible? || host.include?("%") || !number?(service)
      end

      # @return [Boolean] whether Ruby limits the time of the host's look-up, of which the hook is not told. False for
      #   an address, which Ruby does not look up
      def waits_limited?(host, options)
        LIMITS_WAITS && host.is_a?(String) && !Native.address?(host) &&
          options.slice(:timeout, :resolv_timeout, :open_timeout).any? { |_, time| time }
      end

      # @return [Boolean] whether the host is a numeric address, which Ruby does not look up
      def address?(host) = host.is_a?(String) && Native.address?(host)

      # Runs the block in a thread, once fewer than {MAX_THREADS} look-ups do. If the fiber's wait is broken off, the
      # thread is killed.
      #
      # @return [Object] the block's value
      # @raise the block's error, with the fiber's backtrace added
      def in_thread(&) = PERMITS.get.acquire { HelperThread.run(&) }

      private

      def number?(service)
        case service
        when Integer then PORTS.cover?(service)
        when String then service.ascii_only? && service.match?(/\A\d{1,5}\z/) && PORTS.cover?(service.to_i)
        else !service.respond_to?(:to_str)
        end
      end

      def special?(host, details, options)
        flags, reverse_lookup = details.values_at(3, 4)
        flags = 0 if flags.nil?
        waits_limited?(host, options) || reverse?(reverse_lookup, BasicSocket.do_not_reverse_lookup) ||
          !flags.is_a?(Integer) || flags.anybits?(~HARMLESS_FLAGS)
      end

      # Whether the host may have addresses, none of which has the family, type and protocol that `details` ask for.
      # Ruby then reports the same error as for a host without addresses.
      def no_match?(error, details) = details.first(3).any? && error.error_code == Socket::EAI_NONAME

      def reverse?(reverse_lookup, not_by_default)
        reverse_lookup.nil? ? !not_by_default : [true, :hostname].include?(reverse_lookup)
      end
    end
  end
  private_constant :HostNames
end
