# frozen_string_literal: true

module Heddle
  # Ruby's hook for host names is told the host and answers addresses, which Ruby parses again. So it knows nothing of
  # named services, scopes, canonical names and the like, and for reverse look-ups there is no hook. In these cases Ruby
  # does what it does without a scheduler, in a thread, while the fiber waits.
  #
  # The methods are replaced, and not overridden by prepended modules: `resolv-replace` and other libraries give the
  # method that they find another name and call it by that, which a prepended module turns into an endless recursion.
  module HostNames
    PORTS = (0..65_535)
    # The flags that make no difference to what the hook finds.
    HARMLESS = Socket::AI_PASSIVE | Socket::AI_NUMERICHOST | Socket::AI_NUMERICSERV
    NUMERIC = Socket::NI_NUMERICHOST | Socket::NI_NUMERICSERV
    private_constant :PORTS, :HARMLESS, :NUMERIC

    class << self
      # Whether the current fiber is one of Heddle's.
      def scheduled? = Fiber.current_scheduler.is_a?(Scheduler)

      # For `getaddrinfo`: the block's value, or Ruby's own if the hook cannot know it.
      def list(arguments, options, &)
        host, service, *details = arguments
        return in_thread(&) if beyond_hook?(host, service) || (host && special?(details[3], details[4], options))

        begin
          yield
        rescue Socket::ResolutionError => e
          raise unless host && misfit?(e, details)

          in_thread(&)
        end
      end

      # For methods that look up one address: the block's value, by a thread if the hook cannot know it.
      def one(host, service, &) = beyond_hook?(host, service) ? in_thread(&) : yield

      # For methods that look up a name if `flags` say so.
      def name(flags, &) = flags.is_a?(Integer) && flags & NUMERIC == NUMERIC ? yield : in_thread(&)

      # For methods that look up a name if `wanted` says so.
      def peer(socket, wanted, &)
        reverse?(wanted, socket.do_not_reverse_lookup) ? in_thread(&) : yield
      end

      # Whether the hook cannot tell what is asked for.
      def beyond_hook?(host, service)
        host.is_a?(String) && (host.include?("%") || !number?(service))
      end

      # Whether Ruby minds a time for look-ups, which the hook is not told.
      def waits_limited?(options)
        RUBY_VERSION >= "4.0" && !options.slice(:timeout, :resolv_timeout, :open_timeout).compact.empty?
      end

      # Runs the block in a thread, which ends with the fiber's wait.
      def in_thread(&)
        thread = Thread.new(&)
        thread.report_on_exception = false
        thread.value
      rescue StandardError => e
        e.set_backtrace([*e.backtrace, *caller])
        raise
      ensure
        thread&.kill
      end

      private

      def number?(service)
        case service
        when Integer then PORTS.cover?(service)
        when String then service.match?(/\A\d{1,5}\z/) && PORTS.cover?(service.to_i)
        else true
        end
      end

      def special?(flags, reverse_look_up, options)
        flags = 0 if flags.nil?
        waits_limited?(options) || reverse?(reverse_look_up, BasicSocket.do_not_reverse_lookup) ||
          !flags.is_a?(Integer) || flags.anybits?(~HARMLESS)
      end

      # If the host has addresses, but none that fits, Ruby knows only that it got none.
      def misfit?(error, details) = details.first(3).any? && error.error_code == Socket::EAI_NONAME

      def reverse?(wanted, not_by_default)
        wanted.nil? ? !not_by_default : [true, :hostname].include?(wanted)
      end
    end

    # Replaces a method. `rule` is called on this module with the rest, which is Ruby code, and with the old method as
    # block.
    def self.replace(owner, name, rule, *rest)
      original = owner.instance_method(name)
      original = original.super_method until original.owner == owner
      # If another library has replaced it before, it is known to nobody what that does.
      return if original.source_location

      kept = :"#{name}_without_heddle"
      owner.define_method(kept, original)
      visibility = owner.private_method_defined?(name) ? :private : :public
      owner.class_eval <<~RUBY, __FILE__, __LINE__ + 1 # rubocop:disable Style/DocumentDynamicEvalDefinition -- no block
        private :#{kept}

        #{visibility} def #{name}(*arguments, **options)
          return #{kept}(*arguments, **options) unless HostNames.scheduled?

          HostNames.#{rule}(#{rest.join(", ")}) { #{kept}(*arguments, **options) }
        end
      RUBY
    end
    private_class_method :replace

    addrinfo, socket, ip_socket = [Addrinfo, Socket, IPSocket].map(&:singleton_class)
    replace(addrinfo, :getaddrinfo, :list, "arguments", "options")
    replace(addrinfo, :tcp, :one, "arguments[0]", "arguments[1]")
    replace(addrinfo, :udp, :one, "arguments[0]", "arguments[1]")
    replace(addrinfo, :ip, :one, "arguments[0]", "nil")
    replace(socket, :getaddrinfo, :list, "arguments", "options")
    replace(socket, :sockaddr_in, :one, "arguments[1]", "arguments[0]")
    replace(socket, :pack_sockaddr_in, :one, "arguments[1]", "arguments[0]")
    replace(ip_socket, :getaddress, :one, "arguments[0]", "nil")
    replace(TCPServer, :initialize, :one, "*(arguments.size > 1 ? arguments.first(2) : [nil, nil])")
    replace(UDPSocket, :connect, :one, "arguments[0]", "arguments[1]")
    replace(UDPSocket, :bind, :one, "arguments[0]", "arguments[1]")
    replace(UDPSocket, :send, :one, "arguments[2]", "arguments[3]")

    replace(Addrinfo, :getnameinfo, :name, "arguments[0]")
    replace(socket, :getnameinfo, :name, "arguments[1]")
    replace(IPSocket, :addr, :peer, "self", "arguments[0]")
    replace(IPSocket, :peeraddr, :peer, "self", "arguments[0]")
  end
  private_constant :HostNames
end
