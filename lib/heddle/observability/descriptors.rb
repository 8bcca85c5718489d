# frozen_string_literal: true

module Heddle
  # Says what descriptors are, as the kernel knows it. To look for their IOs among all objects of the process would take
  # some 10 ms for a million of them, with the GVL, and find none from the first Ractor on.
  class Descriptors
    # What a fiber that reads from an IO of Heddle's own waits for.
    PURPOSES = ObjectSpace::WeakMap.new
    private_constant :PURPOSES

    # @param io [IO] an IO of Heddle's own
    # @param purpose [String] what a fiber that reads from it waits for
    def self.note(io, purpose)
      PURPOSES[io] = purpose
    end

    # @return [String] `reading socket 127.0.0.1:5432`
    def wait_for(number, verb)
      purpose_of(number) || "#{verb} #{describe(number)}"
    rescue SystemCallError
      # It has been closed since.
      "#{verb} descriptor #{number}"
    end

    private

    # @return [String, nil]
    def purpose_of(number)
      @purposes ||= PURPOSES.keys.to_h { |io| [number_of(io), PURPOSES[io]] }
      @purposes[number]
    end

    # @return [Integer, nil] nil for an IO that is closed
    def number_of(io)
      io.fileno unless io.closed?
    rescue IOError
      # Another thread has closed it since.
      nil
    end

    def describe(number)
      file = File.readlink("/proc/self/fd/#{number}")
      address = address_of(borrow(number)) if file.start_with?("socket:")
      address ? "socket #{address}" : "descriptor #{number} (#{file.sub(/:\[\d+\]\z/, "")})"
    end

    # @return [BasicSocket] never closes the descriptor, which is the program's
    def borrow(number)
      Thread.handle_interrupt(Object => :never) { BasicSocket.for_fd(number).tap { |made| made.autoclose = false } }
    end

    # @return [String, nil] the peer's address; of a socket without a peer, such as a server's, its own
    def address_of(socket)
      address = begin
        socket.remote_address
      rescue SystemCallError
        socket.local_address
      end
      address.inspect_sockaddr if address.ip? || (address.unix? && !address.unix_path.empty?)
    end
  end
  private_constant :Descriptors
end
