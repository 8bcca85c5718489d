# frozen_string_literal: true

module Heddle
  # Connects a TCPSocket to a host in a fiber. From Ruby 3.4 on, `TCPSocket.new` tries a host's addresses side by side
  # (RFC 8305), and waits without asking the scheduler: all fibers of the thread would stand still.
  # `patches/host_names.rb` calls this instead.
  #
  # @api private
  module TCPConnect
    # The options that Ruby defines. Their meaning is known; calls with other options go to Ruby's own method.
    OPTIONS = (%i[resolv_timeout connect_timeout fast_fallback] + (RUBY_VERSION < "4.0" ? [] : [:open_timeout])).freeze
    # Whether Ruby tries addresses side by side.
    RACES = RUBY_VERSION >= "3.4"
    # Names that Ruby takes for addresses.
    SPECIAL_HOSTS = ["", "<any>", "<broadcast>"].freeze
    # The sizes of the buffers into which Ruby copies host and service, in bytes.
    LONGEST_HOST = 1024
    LONGEST_SERVICE = 31
    private_constant :OPTIONS, :RACES, :SPECIAL_HOSTS, :LONGEST_HOST, :LONGEST_SERVICE

    # Connects `socket`, which is being initialized.
    #
    # @param socket [TCPSocket]
    # @param arguments [Array] host, service, and host and service to connect from
    # @param options [Hash]
    # @yield Ruby's own `TCPSocket#initialize`
    def self.call(socket, arguments, options, &)
      if race?(arguments, options)
        connect(Fiber.current_scheduler, socket, arguments, options)
      elsif beyond_hook?(arguments, options)
        HostNames.in_thread(&)
      else
        yield
      end
    end

    # @return [Boolean] whether Ruby would try several addresses side by side. False for invalid arguments, too: Ruby's
    #   own method then raises the error.
    def self.race?(arguments, options)
      host, service, = arguments
      # First, as an address needs none of the other checks.
      return false if !RACES || HostNames.address?(host)

      (2..4).cover?(arguments.size) && options?(options) && name?(host) && service?(service)
    end

    def self.beyond_hook?(arguments, options)
      host, service, local_host, local_service = arguments
      HostNames.beyond_hook?(host, service) || HostNames.beyond_hook?(local_host, local_service) ||
        HostNames.waits_limited?(host, options) || HostNames.waits_limited?(local_host, options)
    end

    def self.connect(scheduler, socket, arguments, options)
      host, service, local_host, local_service = arguments
      options = options.except(:fast_fallback)
      connected = HappyEyeballs.new(scheduler, [host, service], [local_host, local_service], options).connect
      adopt(socket, connected)
    end

    # Makes `socket` the connection. `initialize_copy` copies an IO's mode and descriptor, but only from an IO of the
    # same class. So the connection first becomes an IO of that class.
    def self.adopt(socket, connected)
      same_class = nil
      # If anything was raised at the end of the call, its result would be lost. The collector would close that, by a
      # number that another IO may have by then.
      Heddle.without_preemption do
        connected.autoclose = false
        same_class = BasicSocket.method(:for_fd).unbind.bind_call(socket.class, connected.fileno)
      end
      IO.instance_method(:initialize_copy).bind_call(socket, same_class)
    ensure
      connected.autoclose = true unless same_class
      (same_class || connected).close
    end

    class << self
      private

      def options?(options)
        fast_fallback = options.fetch(:fast_fallback, nil)
        fast_fallback = Socket.tcp_fast_fallback if fast_fallback.nil?
        fast_fallback && (options.keys - OPTIONS).empty? && timeouts?(options.except(:fast_fallback))
      end

      def timeouts?(timeouts)
        return false if timeouts[:open_timeout] && timeouts.compact.size > 1

        timeouts.each_value.all? { |time| time.nil? || timeout?(time) }
      end

      def timeout?(time) = time.is_a?(Numeric) && time.real? && time.finite? && time >= 0

      def name?(host)
        return true if host.nil?

        host = String.try_convert(host)
        plain?(host, LONGEST_HOST) && !SPECIAL_HOSTS.include?(host) && !Native.address?(host)
      end

      def service?(service)
        return true if service.nil? || (service.is_a?(Integer) && service.bit_length < 63)

        plain?(String.try_convert(service), LONGEST_SERVICE)
      end

      def plain?(string, longest)
        string && string.bytesize <= longest && string.encoding.ascii_compatible? && !string.include?("\0")
      end
    end
  end
  private_constant :TCPConnect
end
