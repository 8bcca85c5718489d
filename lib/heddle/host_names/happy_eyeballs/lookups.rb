# frozen_string_literal: true

module Heddle
  class HappyEyeballs
    # Looks up a host's addresses of both families side by side, on native threads, and hands them out in turn.
    class Lookups
      ADDRESS_FAMILY_ERROR = Socket.const_defined?(:EAI_ADDRFAMILY) ? Socket::EAI_ADDRFAMILY : nil
      # An answer's layout, in native 32-bit integers: the answer's length; family, code and errno (the head); then for
      # each address its length and the address itself.
      LENGTH = 4
      HEAD = 12
      private_constant :ADDRESS_FAMILY_ERROR, :LENGTH, :HEAD

      # @return [IO, nil] becomes readable when there is an answer for {#take}; nil without native look-ups
      attr_reader :answers

      def initialize
        @candidates = FAMILIES.to_h { |family| [family, []] }
        @pending = []
        @found = false
      end

      # Starts the look-ups, for the families of the local addresses.
      #
      # @param scheduler [Scheduler]
      # @param remote [Array(Object, Object)] host and service
      # @param local_addresses [Array<Addrinfo>, nil] nil if any family will do
      # @param timeout [Numeric, nil] seconds; only for a look-up that runs on its own
      def start(scheduler, remote, local_addresses, timeout)
        families = local_addresses ? FAMILIES & local_addresses.map(&:afamily) : FAMILIES
        if families.size == 1
          # With a single look-up there is nothing to run side by side.
          add(Lookups.addresses(remote, families.first, timeout))
        elsif remote.first && scheduler.method(:address_resolve).owner != Scheduler
          # A subclass overrides the resolver: Ruby calls that one.
          add(Lookups.addresses(remote, nil, timeout))
        else
          start_native(scheduler, families, *remote)
        end
      end

      # Looks up addresses, and waits for them.
      #
      # @param place [Array(Object, Object)] host and service
      # @param family [Integer, nil] nil is any
      # @param timeout [Numeric, nil] seconds; nil is for ever
      # @return [Array<Addrinfo>]
      # @raise [Socket::ResolutionError]
      def self.addresses(place, family, timeout)
        Addrinfo.getaddrinfo(*place, family, :STREAM, **(timeout ? { timeout: } : {}))
      end

      # Reads one answer.
      #
      # @return [Array(Integer, Integer), nil] the failure: `EAI_NONAME` or the like, and an errno for `EAI_SYSTEM`. nil
      #   if this look-up or the other family's has succeeded.
      def take
        content = @answers.read(@answers.read(LENGTH).unpack1("l"))
        family, code, errno = content.unpack("l3")
        @pending.delete(family)
        if code.zero?
          add_answer(family, content)
        elsif !@found && !(family == Socket::AF_INET6 && code == ADDRESS_FAMILY_ERROR)
          [code, errno]
        end
      end

      # @return [Boolean] whether a look-up is running
      def pending? = @pending.any?

      # @return [Boolean] whether the IPv4 look-up has ended, and the IPv6 one has not
      def only_v4? = @pending == [Socket::AF_INET6] && @found

      # @return [Boolean] whether there are addresses left to try
      def any? = @candidates.each_value.any?(&:any?)

      # Takes the next address. The families alternate, IPv6 first.
      #
      # @return [Addrinfo, nil]
      def next
        families = @last == Socket::AF_INET6 ? FAMILIES.reverse : FAMILIES
        family = families.find { |each| @candidates[each].any? }
        family && @candidates[family].shift
      end

      # An attempt for an address of this family has started.
      def tried(family) = @last = family

      # Cancels look-ups that have not started. The answers of the others are discarded.
      def close = @answers&.close

      private

      # Starts a native look-up for each family.
      def start_native(scheduler, families, host, service)
        numeric = service.is_a?(Integer)
        service = numeric ? service.to_s : service && String.try_convert(service)
        host &&= String.try_convert(host)
        @pending = families.dup
        @answers = Native.look_up(scheduler, host, service, families, numeric ? Socket::AI_NUMERICSERV : 0)
        Descriptors.note(@answers, "worker: resolving #{host}")
      end

      def add(addresses) = addresses.each { |address| @candidates[address.afamily] << address }

      def add_answer(family, content)
        @found = true
        position = HEAD
        while position < content.bytesize
          length = content.unpack1("l", offset: position)
          address = content.byteslice(position + LENGTH, length)
          @candidates[family] << Addrinfo.new(address, family, :STREAM, Socket::IPPROTO_TCP)
          position += LENGTH + length
        end
        nil
      end
    end
    private_constant :Lookups
  end
end
