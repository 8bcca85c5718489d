# frozen_string_literal: true

module Heddle
  # Connects to a host by its name, as TCPSocket.new does from Ruby 3.4 on (RFC 8305): IPv6 and IPv4 addresses are looked
  # up and connected to side by side, and the first connection counts. Ruby does this in C and waits there without asking
  # the scheduler; here every wait is a hook, so that the thread's other fibers run meanwhile. Delays, timeouts and errors
  # are Ruby's.
  class HappyEyeballs
    # In the order in which they are tried.
    FAMILIES = [Socket::AF_INET6, Socket::AF_INET].freeze
    # How long IPv4 addresses wait for the look-up of the IPv6 ones, in seconds.
    RESOLUTION_DELAY = 0.05
    # How long one connection is tried before the next one is begun, too.
    ATTEMPT_DELAY = 0.25

    # A host and a service, as they were given.
    Place = Struct.new(:host, :service)

    # What went wrong last: a look-up (`code`, and an errno if the code is `EAI_SYSTEM`), or a system call (errno).
    Failure = Struct.new(:code, :errno)
    private_constant :FAMILIES, :RESOLUTION_DELAY, :ATTEMPT_DELAY, :Place, :Failure

    require_relative "happy_eyeballs/look_ups"

    # @param scheduler [Scheduler] the current one
    # @param remote [Array(Object, Object)] host (nil is this one) and service
    # @param local [Array(Object, Object)] host and service to connect from; nil is any
    # @param resolv_timeout [Numeric, nil] seconds for the look-ups
    # @param connect_timeout [Numeric, nil] seconds for the last of the addresses
    # @param open_timeout [Numeric, nil] seconds for everything
    def initialize(scheduler, remote, local, resolv_timeout: nil, connect_timeout: nil, open_timeout: nil)
      @scheduler = scheduler
      @remote = Place.new(*remote)
      @local = Place.new(*local)
      @resolv_timeout = resolv_timeout
      @connect_timeout = connect_timeout
      @open_timeout = open_timeout
      @look_ups = LookUps.new
      @attempts = []
    end

    # @return [Socket] connected
    # @raise what TCPSocket.new raises
    def connect
      @now = clock
      @open_until = @now + @open_timeout if @open_timeout
      look_up
      loop do
        socket = start_attempt || wait_for_attempt
        return socket if socket

        check_end
      end
    ensure
      @look_ups.close
      @attempts.each(&:close)
    end

    private

    def clock = Process.clock_gettime(Process::CLOCK_MONOTONIC)

    # @!group Look-ups

    def look_up
      @local_addresses = addresses_of(@local, nil) if @local.host || @local.service
      families = @local_addresses ? FAMILIES & @local_addresses.map(&:afamily) : FAMILIES
      if families.size == 1
        # A single look-up has no other one to be raced by, so it is waited for.
        @look_ups.add(addresses_of(@remote, families.first))
      elsif @remote.host && @scheduler.method(:address_resolve).owner != Scheduler
        # Whoever has a resolver of its own wants that to be asked.
        @look_ups.add(addresses_of(@remote, nil))
      else
        @resolv_until = @resolv_timeout ? @now + @resolv_timeout : Float::INFINITY
        @look_ups.start(@scheduler, @remote, families)
      end
    end

    def addresses_of(place, family)
      timeout = @open_timeout || @resolv_timeout
      Addrinfo.getaddrinfo(place.host, place.service, family, :STREAM, **(timeout ? { timeout: } : {}))
    end

    def take_answer
      failed = @look_ups.take
      @call, @failure = "getaddrinfo(3)", Failure.new(*failed) if failed
      if !@look_ups.pending?
        @resolution_delay_until = @resolv_until = nil
      elsif @look_ups.only_v4?
        @resolution_delay_until = @now + RESOLUTION_DELAY
      end
    end

    # @!endgroup

    # @!group Attempts

    # Begins to connect to the next address. The socket, if it is connected at once.
    def start_attempt
      return if @resolution_delay_until || @attempt_delay_until

      while (address = @look_ups.next)
        local = local_for(address)
        next if @local_addresses && !local

        socket, connected = attempt(address, local)
        return (socket if connected) if socket
        next if @look_ups.any?
        return if @attempts.any? || @look_ups.pending?

        fail_at_last
      end
    end

    # The address to connect from.
    def local_for(address)
      return unless @local_addresses

      local = @local_addresses.find { |each| each.afamily == address.afamily }
      return local if local || alternatives?

      raise system_call_error(Errno::EAFNOSUPPORT::Errno, @local)
    end

    # Whether there is anything besides the address that was taken last.
    def alternatives? = @look_ups.any? || @attempts.any? || @look_ups.pending?

    # @return [Array(Socket, Boolean), nil] whether it is connected already; nil if it cannot be
    def attempt(address, local)
      @call = "socket(2)"
      socket = Socket.new(address.pfamily, address.socktype, address.protocol)
      bind(socket, local) if local
      @call = "connect(2)"
      begin_last_attempt(address) unless alternatives?
      connected = socket.connect_nonblock(address, exception: false) != :wait_writable
      began(socket, address) unless connected
      [socket, connected]
    rescue SystemCallError => e
      socket&.close
      @failure = Failure.new(nil, e.errno)
      nil
    rescue Exception # rubocop:disable Lint/RescueException -- raised again
      socket&.close
      raise
    end

    def bind(socket, local)
      socket.setsockopt(:SOCKET, :REUSEADDR, true)
      @call = "bind(2)"
      @unbound = true
      socket.bind(local)
      @unbound = false
    end

    # An attempt with no alternative has a time of its own.
    def begin_last_attempt(address)
      raise_timeout if past?(@open_until, clock)
      @last_address = address
      @last_until = @open_until || (@connect_timeout && (clock + @connect_timeout)) || Float::INFINITY
    end

    def began(socket, address)
      @attempts << socket
      return if @last_until

      @look_ups.tried(address.afamily)
      @attempt_delay_until = @now + ATTEMPT_DELAY
      @connect_until = @connect_timeout ? @now + @connect_timeout : Float::INFINITY unless @look_ups.any?
    end

    # Waits until something happens. The socket, if one is connected.
    def wait_for_attempt
      time = wait_until
      timeout = (time - clock).clamp(0..) if time && time != Float::INFINITY
      answered, writable = IO.select(@look_ups.pending? ? [@look_ups.answers] : nil, @attempts, nil, timeout)
      @now = clock
      @resolution_delay_until = nil if past?(@resolution_delay_until)
      @attempt_delay_until = nil if past?(@attempt_delay_until)
      connected = writable&.find { |socket| connected?(socket) }
      take_answer if !connected && answered&.any?
      connected
    end

    def wait_until
      if @last_until then @last_until
      elsif @look_ups.any? then [@resolution_delay_until || @attempt_delay_until, @open_until].compact.min
      else @open_until || [@resolv_until, @connect_until].compact.max
      end
    end

    def past?(time, now = @now) = time && now >= time

    # Whether the attempt has succeeded. It is over.
    def connected?(socket)
      errno = socket.getsockopt(:SOCKET, :ERROR).int
      @attempts.delete(socket)
      return true if errno.zero?

      socket.close
      @failure = Failure.new(nil, errno)
      fail_at_last unless alternatives?
      @attempt_delay_until = @connect_until = nil if @attempts.empty?
      false
    end

    # @!endgroup

    # @!group Errors

    def check_end
      raise_last_timeout if past?(@last_until)
      raise_timeout if past?(@open_until)
      return if @look_ups.any?

      fail_at_last unless alternatives?
      looked_up = !@look_ups.pending? || past?(@resolv_until)
      raise_timeout if !@last_until && looked_up && (@attempts.empty? || past?(@connect_until))
    end

    def fail_at_last
      raise Scheduler.resolution_error(@call, @failure.code, @failure.errno) if @failure.code

      raise system_call_error(@failure.errno, @unbound ? @local : @remote)
    end

    def system_call_error(errno, place)
      message = "#{@call} for #{place.host.inspect} port #{place.service}"
      # From Ruby 4.0 on it is one class, whether the time was the program's or the system's.
      return IO::TimeoutError.new(message) if errno == Errno::ETIMEDOUT::Errno && RUBY_VERSION >= "4.0"

      SystemCallError.new(message, errno)
    end

    def raise_timeout
      raise Errno::ETIMEDOUT, "user specified timeout" if RUBY_VERSION < "4.0"

      raise IO::TimeoutError, "user specified timeout for #{@remote.host} port #{@remote.service}"
    end

    def raise_last_timeout
      raise IO::TimeoutError, "Connect timed out!" if RUBY_VERSION < "4.0"

      raise IO::TimeoutError, "user specified timeout for #{@last_address.inspect_sockaddr}"
    end

    # @!endgroup
  end
  private_constant :HappyEyeballs
end
