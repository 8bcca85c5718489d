# frozen_string_literal: true

module Heddle
  class HappyEyeballs
    # Starts a connection attempt.
    module Attempt
      # @param address [Addrinfo] to connect to
      # @param local [Addrinfo, nil] to connect from; nil is any address
      # @param report [Report] records errors
      # @return [Array(Socket, Boolean), nil] the socket, and whether it is connected already; nil if the attempt failed
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
