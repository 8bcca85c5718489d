# frozen_string_literal: true

module Heddle
  # Connects to a host by its name, as `TCPSocket.new` does from Ruby 3.4 on (RFC 8305, "Happy Eyeballs"). It looks up
  # IPv6 and IPv4 addresses side by side, tries to connect to them side by side, and takes the first connection.
  #
  # Ruby does this in C, and waits there without asking the scheduler. Here every wait is a hook, so the thread's other
  # fibers run in the meantime. Delays, timeouts and errors are the same as Ruby's.
  class HappyEyeballs
    # The address families, in the order in which they are tried.
    FAMILIES = [Socket::AF_INET6, Socket::AF_INET].freeze
    private_constant :FAMILIES

    require_relative "happy_eyeballs/deadlines"
    require_relative "happy_eyeballs/lookups"
    require_relative "happy_eyeballs/report"

    # @param scheduler [Scheduler] the current one
    # @param remote [Array(Object, Object)] host (nil is this host) and service
    # @param local [Array(Object, Object)] host and service to connect from; nil is any
    # @param timeouts [Hash] seconds, each optional: `:resolv_timeout` for the look-ups, `:connect_timeout` for the last
    #   address, `:open_timeout` for everything
    def initialize(scheduler, remote, local, timeouts)
      @scheduler = scheduler
      @remote = remote
      @local = local
      @deadlines = Deadlines.new(timeouts)
      @report = Report.new(remote, local)
      @lookups = Lookups.new
      @attempts = []
    end

    # @return [Socket] the connected socket
    # @raise what `TCPSocket.new` raises
    def connect
      start_lookups
      while true # rubocop:disable Style/InfiniteLoop -- `loop` would rescue a StopIteration that is raised in this fiber
        socket = start_attempt || wait
        return socket if socket

        check_deadlines
      end
    ensure
      @lookups.close
      @attempts.each(&:close)
    end

    private

    def start_lookups
      @local_addresses = Lookups.addresses(@local, nil, @deadlines.lookup_timeout) if @local.any?
      @lookups.start(@scheduler, @remote, @local_addresses, @deadlines.lookup_timeout)
      @deadlines.end_lookups unless @lookups.pending?
    end

    # Starts an attempt for the next address.
    #
    # @return [Socket, nil] the socket, if it is connected at once
    def start_attempt
      return if @deadlines.delayed?

      while (address = @lookups.next)
        socket, connected = attempt(address)
        return (socket if connected) if socket

        raise @report.error unless alternatives?
      end
    end

    # Whether there is anything left besides the address that was taken last.
    def alternatives? = @lookups.any? || @attempts.any? || @lookups.pending?

    # @return [Array(Socket, Boolean), nil] the socket, and whether it is connected already; nil if the attempt failed
    def attempt(address)
      local = local_for(address)
      return if @local_addresses && !local

      begin_last_attempt(address) unless alternatives?
      socket, connected = begin_attempt(address, local)
      add_attempt(socket, address) if socket && !connected
      [socket, connected]
    end

    # @param local [Addrinfo, nil] to connect from; nil is any address
    # @return (see #attempt)
    def begin_attempt(address, local)
      @report.call = "socket(2)"
      socket = Socket.new(address.pfamily, address.socktype, address.protocol)
      bind(socket, local) if local
      @report.call = "connect(2)"
      [socket, socket.connect_nonblock(address, exception: false) != :wait_writable]
    rescue SystemCallError => e
      socket&.close
      @report.failed(e.errno)
      nil
    rescue Exception # rubocop:disable Lint/RescueException -- raised again
      socket&.close
      raise
    end

    def bind(socket, local)
      socket.setsockopt(:SOCKET, :REUSEADDR, true)
      @report.binding
      socket.bind(local)
      @report.bound
    end

    def add_attempt(socket, address)
      @attempts << socket
      @lookups.tried(address.afamily)
      @deadlines.begin_attempt(more: @lookups.any?) unless @deadlines.last_attempt?
    end

    # @return [Addrinfo, nil] the address to connect from; nil is any
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

    # Waits for an answer, a connection or a deadline.
    #
    # @return [Socket, nil] the socket, if one is connected
    def wait
      answers = [@lookups.answers] if @lookups.pending?
      answered, writable = IO.select(answers, @attempts, nil, @deadlines.timeout(more: @lookups.any?))
      @deadlines.advance
      connected = writable&.find { |socket| connected?(socket) }
      read_answer if !connected && answered&.any?
      connected
    end

    # Ends an attempt whose socket has become writable.
    #
    # @return [Boolean] whether it has succeeded
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

    def read_answer
      failed = @lookups.take
      @report.unresolved(*failed) if failed
      if !@lookups.pending?
        @deadlines.end_lookups
      elsif @lookups.only_v4?
        @deadlines.delay_v4
      end
    end

    def check_deadlines
      raise @report.last_timeout(@last_address) if @deadlines.last_attempt_over?
      raise @report.timeout if @deadlines.over?
      return if @lookups.any?

      raise @report.error unless alternatives?
      raise @report.timeout if @deadlines.in_vain?(pending: @lookups.pending?, trying: @attempts.any?)
    end
  end
  private_constant :HappyEyeballs
end
