# frozen_string_literal: true

module Heddle
  # Finds the IOs to which descriptor numbers belong. Looking through all objects of the process takes long (10 ms for a
  # million of them), so it is done once, and only if a number is asked for. The dashboard asks again and again, and
  # gets what the kernel knows.
  class OpenIOs
    # What a fiber that reads from an IO of Heddle's own waits for.
    PURPOSES = ObjectSpace::WeakMap.new
    INSPECT = IO.instance_method(:inspect)
    CLASS = Kernel.instance_method(:class)
    private_constant :PURPOSES, :INSPECT, :CLASS

    # @param io [IO] an IO of Heddle's own
    # @param purpose [String] what a fiber that reads from it waits for
    def self.note(io, purpose)
      PURPOSES[io] = purpose
    end

    # @param searches [Boolean] whether to look through all objects
    def initialize(searches: true)
      @searches = searches
    end

    # @return [String] `reading #<TCPSocket 127.0.0.1:5432>`; or, from the kernel, `reading socket 127.0.0.1:5432`
    def wait_for(number, verb)
      return purpose_of(number) || "#{verb} #{described_by_kernel(number)}" unless @searches && (io = owner_of(number))

      PURPOSES[io] || "#{verb} #{describe(io)}"
    rescue StandardError
      # The IO has been closed since, or a subclass raises.
      "#{verb} descriptor #{number}"
    end

    private

    # Several IOs can have one number: `IO.for_fd` makes a second one, and a socket that does not know that its
    # descriptor was closed keeps the number, which the kernel gives to the next file.
    #
    # @return [IO, nil]
    def owner_of(number)
      sockets, others = by_number[number]&.partition { |io| io.is_a?(BasicSocket) }
      return unless sockets

      sockets.find { |socket| socket.stat.socket? } || others.first
    end

    # @return [String, nil]
    def purpose_of(number)
      @purposes ||= PURPOSES.keys.to_h { |io| [number_of(io), PURPOSES[io]] }
      @purposes[number]
    end

    def by_number
      @by_number ||= {}.tap do |found|
        ObjectSpace.each_object(IO) do |io|
          number = number_of(io)
          (found[number] ||= []).push(io) if number
        end
      end
    end

    # @return [Integer, nil] nil for an IO that is closed, or was never opened
    def number_of(io)
      io.fileno unless io.closed?
    rescue StandardError
      nil
    end

    def describe(io)
      address = socket_address(io) if io.is_a?(BasicSocket)
      address ? "#<#{CLASS.bind_call(io)} #{address}>" : INSPECT.bind_call(io)
    end

    # Also from a program's first Ractor on: Ruby finds no IOs any more then.
    def described_by_kernel(number)
      file = File.readlink("/proc/self/fd/#{number}")
      if file.start_with?("socket:")
        socket = BasicSocket.for_fd(number)
        socket.autoclose = false
        address = socket_address(socket)
      end
      address ? "socket #{address}" : "descriptor #{number} (#{file.sub(/:\[\d+\]\z/, "")})"
    rescue SystemCallError
      "descriptor #{number}"
    end

    # @return [String, nil] the peer's address; of a socket without a peer, such as a server's, its own
    def socket_address(socket)
      address = begin
        socket.remote_address
      rescue SystemCallError
        socket.local_address
      end
      address.inspect_sockaddr if address.ip? || (address.unix? && !address.unix_path.empty?)
    end
  end
  private_constant :OpenIOs
end
