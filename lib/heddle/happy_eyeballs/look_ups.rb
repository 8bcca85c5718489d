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

      # Starts a look-up for each family.
      def start(scheduler, place, families)
        host = place.host && String.try_convert(place.host)
        service = place.service
        numeric = service.is_a?(Integer)
        service = numeric ? service.to_s : service && String.try_convert(service)
        @pending = families.dup
        @answers = scheduler.__send__(:look_up, host, service, families, numeric ? NUMERIC_SERVICE : 0)
      end

      # What is known without a look-up.
      def add(addresses) = addresses.each { |address| @candidates[address.afamily] << address }

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
