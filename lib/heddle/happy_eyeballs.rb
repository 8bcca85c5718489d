# frozen_string_literal: true

module Heddle
  # Connects to a host by its name, as TCPSocket.new does from Ruby 3.4 on (RFC 8305): IPv6 and IPv4 addresses are
  # looked up and connected to side by side, and the first connection counts. Ruby does this in C and waits there
  # without asking the scheduler; here every wait is a hook, so that the thread's other fibers run meanwhile. Delays,
  # timeouts and errors are Ruby's.
  class HappyEyeballs
    # In the order in which they are tried.
    FAMILIES = [Socket::AF_INET6, Socket::AF_INET].freeze
    private_constant :FAMILIES

    require_relative "happy_eyeballs/attempt"
    require_relative "happy_eyeballs/deadlines"
    require_relative "happy_eyeballs/look_ups"
    require_relative "happy_eyeballs/report"

    # @param scheduler [Scheduler] the current one
    # @param remote [Array(Object, Object)] host (nil is this one) and service
    # @param local [Array(Object, Object)] host and service to connect from; nil is any
    # @param timeouts [Hash] seconds, each of them optional: `:resolv_timeout` for the look-ups, `:connect_timeout` for
    #   the last of the addresses, `:open_timeout` for everything
    def initialize(scheduler, remote, local, timeouts)
      @scheduler = scheduler
      @remote = remote
      @local = local
      @deadlines = Deadlines.new(timeouts)
      @report = Report.new(remote, local)
      @look_ups = LookUps.new
      @attempts = []
    end

    # @return [Socket] connected
    # @raise what TCPSocket.new raises
    def connect
      look_up
      loop do
        socket = start_attempt || wait
        return socket if socket

        check_end
      end
    ensure
      @look_ups.close
      @attempts.each(&:close)
    end

    private

    def look_up
      @local_addresses = LookUps.addresses(@local, nil, @deadlines.look_up_timeout) if @local.any?
      @look_ups.start(@scheduler, @remote, @local_addresses, @deadlines.look_up_timeout)
      @deadlines.end_look_ups unless @look_ups.pending?
    end

    # Begins to connect to the next address. The socket, if it is connected at once.
    def start_attempt
      return if @deadlines.delayed?

      while (address = @look_ups.next)
        socket, connected = attempt(address)
        return (socket if connected) if socket

        raise @report.error unless alternatives?
      end
    end

    # Whether there is anything besides the address that was taken last.
    def alternatives? = @look_ups.any? || @attempts.any? || @look_ups.pending?

    # @return [Array(Socket, Boolean), nil] whether it is connected already; no socket if it cannot be
    def attempt(address)
      local = local_for(address)
      return if @local_addresses && !local

      begin_last_attempt(address) unless alternatives?
      socket, connected = Attempt.begin(address, local, @report)
      wait_for(socket, address) if socket && !connected
      [socket, connected]
    end

    def wait_for(socket, address)
      @attempts << socket
      @look_ups.tried(address.afamily)
      @deadlines.begin_attempt(more: @look_ups.any?) unless @deadlines.last_attempt?
    end

    # The address to connect from.
    def local_for(address)
      return unless @local_addresses

      local = @local_addresses.find { |each| each.afamily == address.afamily }
      return local if local || alternatives?

      raise @report.family_error
    end

    def begin_last_attempt(address)
      @last_address = address
      @deadlines.begin_last_attempt
      raise @report.timeout if @deadlines.over?
    end

    # Waits until something happens. The socket, if one is connected.
    def wait
      answers = [@look_ups.answers] if @look_ups.pending?
      answered, writable = IO.select(answers, @attempts, nil, @deadlines.timeout(more: @look_ups.any?))
      @deadlines.advance
      connected = writable&.find { |socket| connected?(socket) }
      take_answer if !connected && answered&.any?
      connected
    end

    # Whether the attempt has succeeded. It is over.
    def connected?(socket)
      errno = socket.getsockopt(:SOCKET, :ERROR).int
      @attempts.delete(socket)
      return true if errno.zero?

      socket.close
      @report.failed(errno)
      raise @report.error unless alternatives?

      @deadlines.end_attempts if @attempts.empty?
      false
    end

    def take_answer
      failed = @look_ups.take
      @report.unresolved(*failed) if failed
      if !@look_ups.pending?
        @deadlines.end_look_ups
      elsif @look_ups.only_v4?
        @deadlines.delay_v4
      end
    end

    def check_end
      raise @report.last_timeout(@last_address) if @deadlines.last_attempt_over?
      raise @report.timeout if @deadlines.over?
      return if @look_ups.any?

      raise @report.error unless alternatives?
      raise @report.timeout if @deadlines.in_vain?(pending: @look_ups.pending?, trying: @attempts.any?)
    end
  end
  private_constant :HappyEyeballs
end
