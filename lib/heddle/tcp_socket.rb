# frozen_string_literal: true

require_relative "happy_eyeballs"
require_relative "host_names"

module Heddle # :nodoc:
  # From Ruby 3.4 on `TCPSocket.new` tries the addresses of a host side by side (RFC 8305), and waits meanwhile without
  # asking the scheduler: every fiber of the thread would stand still. So a fiber of Heddle's goes another way. The
  # method is replaced for the reason that {HostNames} tells.
  module TCPSocketConnect
    # The options that are Ruby's own, with which it is certain what they mean.
    OPTIONS = (%i[resolv_timeout connect_timeout fast_fallback] + (RUBY_VERSION < "4.0" ? [] : [:open_timeout])).freeze
    # Names that Ruby takes for addresses.
    SPECIAL = ["", "<any>", "<broadcast>"].freeze
    # What fits into the buffers into which Ruby copies the names.
    LONGEST_HOST = 1024
    LONGEST_SERVICE = 31
    IPV4 = /\A\d{1,3}(?:\.\d{1,3}){3}\z/
    private_constant :OPTIONS, :SPECIAL, :IPV4, :LONGEST_HOST, :LONGEST_SERVICE

    # Connects `socket`, which is about to be initialized. The block is Ruby's own way.
    def self.call(socket, arguments, options, &)
      if race?(arguments, options)
        connect(Fiber.current_scheduler, socket, arguments, options)
      elsif beyond_hook?(arguments, options)
        HostNames.in_thread(&)
      else
        yield
      end
    end

    # Whether Ruby would try several addresses for these arguments. What it refuses is left to it.
    def self.race?(arguments, options)
      return false if RUBY_VERSION < "3.4"

      host, service, = arguments
      (2..4).cover?(arguments.size) && options?(options) && name?(host) && service?(service)
    end

    def self.beyond_hook?(arguments, options)
      host, service, local_host, local_service = arguments
      HostNames.beyond_hook?(host, service) || HostNames.beyond_hook?(local_host, local_service) ||
        (host.is_a?(String) && HostNames.waits_limited?(options))
    end

    def self.connect(scheduler, socket, arguments, options)
      host, service, local_host, local_service = arguments
      options = options.except(:fast_fallback)
      connected = HappyEyeballs.new(scheduler, [host, service], [local_host, local_service], options).connect
      adopt(socket, connected)
    end

    # Ruby copies an IO's mode and descriptor for `dup`, but only for one of the same class.
    def self.adopt(socket, connected)
      connected.autoclose = false
      likeness = BasicSocket.method(:for_fd).unbind.bind_call(socket.class, connected.fileno)
      IO.instance_method(:initialize_copy).bind_call(socket, likeness)
    ensure
      connected.autoclose = true unless likeness
      (likeness || connected).close
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
        plain?(host, LONGEST_HOST) && !SPECIAL.include?(host) && !address?(host)
      end

      def service?(service)
        return true if service.nil? || (service.is_a?(Integer) && service.bit_length < 63)

        plain?(String.try_convert(service), LONGEST_SERVICE)
      end

      def plain?(string, longest)
        string && string.bytesize <= longest && string.encoding.ascii_compatible? && !string.include?("\0")
      end

      # A name has no colon, and an address with a scope is looked up like a name.
      def address?(host) = host.include?(":") ? !host.include?("%") : IPV4.match?(host)
    end
  end
  private_constant :TCPSocketConnect

  # See {TCPSocketConnect}.
  class ::TCPSocket
    original = instance_method(:initialize)
    original = original.super_method until original.owner == self
    # If another library has replaced it before, it is known to nobody what that does.
    unless original.source_location
      define_method(:initialize_without_heddle, original)
      private :initialize_without_heddle

      # Connects; see Ruby's documentation.
      def initialize(*arguments, **options)
        if HostNames.scheduled?
          TCPSocketConnect.call(self, arguments, options) { initialize_without_heddle(*arguments, **options) }
        else
          initialize_without_heddle(*arguments, **options)
        end
      end
    end
  end
end
