# frozen_string_literal: true

module Heddle
  class HappyEyeballs
    # Begins to connect.
    module Attempt
      # @param address [Addrinfo] to connect to
      # @param local [Addrinfo, nil] to connect from; nil is any
      # @param report [Report] is told what goes wrong
      # @return [Array(Socket, Boolean), nil] whether it is connected already; nil if it cannot be
      def self.begin(address, local, report)
        report.call = "socket(2)"
        socket = Socket.new(address.pfamily, address.socktype, address.protocol)
        bind(socket, local, report) if local
        report.call = "connect(2)"
        [socket, socket.connect_nonblock(address, exception: false) != :wait_writable]
      rescue SystemCallError => e
        socket&.close
        report.failed(e.errno)
        nil
      rescue Exception # rubocop:disable Lint/RescueException -- raised again
        socket&.close
        raise
      end

      def self.bind(socket, local, report)
        socket.setsockopt(:SOCKET, :REUSEADDR, true)
        report.binding
        socket.bind(local)
        report.bound
      end
      private_class_method :bind
    end
    private_constant :Attempt
  end
end
