# frozen_string_literal: true

module Heddle
  class HappyEyeballs
    # The addresses of a host: those of both families are looked up side by side, by threads that know nothing of Ruby.
    class LookUps
      NUMERIC_SERVICE = Socket.const_defined?(:AI_NUMERICSERV) ? Socket::AI_NUMERICSERV : 0
      ADDRESS_FAMILY_ERROR = Socket.const_defined?(:EAI_ADDRFAMILY) ? Socket::EAI_ADDRFAMILY : nil
      LENGTH = 4
      HEAD = 12
      private_constant :NUMERIC_SERVICE, :ADDRESS_FAMILY_ERROR, :LENGTH, :HEAD

      # @return [IO, nil] becomes readable when there is an answer to {#take}
      attr_reader :answers

      def initialize
        @candidates = FAMILIES.to_h { |family| [family, []] }
        @pending = []
        @found = false
      end

      # Begins to look up those addresses of a host that one of the local addresses can be connected from.
      #
      # @param scheduler [Scheduler]
      # @param remote [Array(Object, Object)] host and service
      # @param local_addresses [Array<Addrinfo>, nil] nil if any will do
      # @param timeout [Numeric, nil] seconds, for a look-up that is waited for
      def start(scheduler, remote, local_addresses, timeout)
        families = local_addresses ? FAMILIES & local_addresses.map(&:afamily) : FAMILIES
        if families.size == 1
          # A single look-up has no other one to be raced by.
          add(LookUps.addresses(remote, families.first, timeout))
        elsif remote.first && scheduler.method(:address_resolve).owner != Scheduler
          # A scheduler with a resolver of its own is to be asked.
          add(LookUps.addresses(remote, nil, timeout))
        else
          look_up(scheduler, families, *remote)
        end
      end

      # Waits for the addresses of a place.
      #
      # @return [Array<Addrinfo>]
      def self.addresses(place, family, timeout)
        Addrinfo.getaddrinfo(*place, family, :STREAM, **(timeout ? { timeout: } : {}))
      end

      # Takes one answer.
      #
      # @return [Array(Integer, Integer), nil] why the look-up has failed: `EAI_NONAME` or the like, and an errno for
      #   `EAI_SYSTEM`; nil if it has not, or if the other family's has not
      def take
        content = @answers.read(@answers.read(LENGTH).unpack1("l"))
        family, code, errno = content.unpack("l3")
        @pending.delete(family)
        if code.zero?
          take_addresses(family, content)
        elsif !@found && !(family == Socket::AF_INET6 && code == ADDRESS_FAMILY_ERROR)
          [code, errno]
        end
      end

      # Whether a family's answer is still to come.
      def pending? = @pending.any?

      # Whether IPv4 has been answered, and IPv6 has not.
      def only_v4? = @pending == [Socket::AF_INET6] && @found

      # Whether an address is left.
      def any? = @candidates.each_value.any?(&:any?)

      # The next address. The families take turns, IPv6 first.
      #
      # @return [Addrinfo, nil]
      def next
        families = @last == Socket::AF_INET6 ? FAMILIES.reverse : FAMILIES
        family = families.find { |each| @candidates[each].any? }
        family && @candidates[family].shift
      end

      # An address of this family has been tried.
      def tried(family) = @last = family

      # What has not begun is given up, and what has is of no interest any more.
      def close = @answers&.close

      private

      # Starts a look-up for each family.
      def look_up(scheduler, families, host, service)
        numeric = service.is_a?(Integer)
        service = numeric ? service.to_s : service && String.try_convert(service)
        host &&= String.try_convert(host)
        @pending = families.dup
        @answers = scheduler.__send__(:look_up, host, service, families, numeric ? NUMERIC_SERVICE : 0)
      end

      def add(addresses) = addresses.each { |address| @candidates[address.afamily] << address }

      def take_addresses(family, content)
        @found = true
        at = HEAD
        while at < content.bytesize
          length = content.unpack1("l", offset: at)
          address = content.byteslice(at + LENGTH, length)
          @candidates[family] << Addrinfo.new(address, family, :STREAM, Socket::IPPROTO_TCP)
          at += LENGTH + length
        end
        nil
      end
    end
    private_constant :LookUps
  end
end
