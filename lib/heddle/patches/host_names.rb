# frozen_string_literal: true

module Heddle # :nodoc:
  # Makes Ruby's methods for host names ask {HostNames} whether to call the hook or to run in a thread, and
  # `TCPSocket.new` connect by {TCPConnect}, so that the thread's other fibers run in the meantime.
  #
  # The methods are replaced. Prepended modules would break `resolv-replace` and similar libraries: they alias the
  # method that they find and call it by the alias, which with a prepended module recurses without end.
  module HostNamesPatch
    # Replaces a method.
    #
    # @param owner [Module]
    # @param name [Symbol] the method
    # @param call [String] what a scheduled fiber calls instead, as Ruby code that may use `arguments` and `options`;
    #   the old method is its block
    def self.replace(owner, name, call)
      original = owner.instance_method(name)
      original = original.super_method until original.owner == owner
      # If another library has replaced the method before, it is unknown what that one does. It stays.
      return if original.source_location

      kept = :"#{name}_without_heddle"
      owner.define_method(kept, original)
      visibility = owner.private_method_defined?(name) ? :private : :public
      owner.class_eval <<~RUBY, __FILE__, __LINE__ + 1 # rubocop:disable Style/DocumentDynamicEvalDefinition -- no block
        private :#{kept}

        #{visibility} def #{name}(*arguments, **options)
          return #{kept}(*arguments, **options) unless HostNames.scheduled?

          #{call} { #{kept}(*arguments, **options) }
        end
      RUBY
    end

    # Replaces what Ruby has under two names. To the program both remain one method.
    #
    # @param other [Symbol] the second name
    # @param name [Symbol] the first, which has been replaced
    def self.keep_alias(owner, other, name)
      kept = :"#{name}_without_heddle"
      return unless owner.private_method_defined?(kept) && owner.instance_method(other) == owner.instance_method(kept)

      owner.alias_method(other, name)
    end

    Patches.add do
      addrinfo, socket, ip_socket = [Addrinfo, Socket, IPSocket].map(&:singleton_class)
      replace(addrinfo, :getaddrinfo, "HostNames.address_list(arguments, options)")
      replace(addrinfo, :tcp, "HostNames.address(arguments[0], arguments[1])")
      replace(addrinfo, :udp, "HostNames.address(arguments[0], arguments[1])")
      replace(addrinfo, :ip, "HostNames.address(arguments[0], nil)")
      replace(socket, :getaddrinfo, "HostNames.address_list(arguments, options)")
      replace(socket, :sockaddr_in, "HostNames.address(arguments[1], arguments[0])")
      keep_alias(socket, :pack_sockaddr_in, :sockaddr_in)
      replace(ip_socket, :getaddress, "HostNames.address(arguments[0], nil)")
      replace(TCPServer, :initialize, "HostNames.address(*(arguments.size > 1 ? arguments.first(2) : [nil, nil]))")
      replace(TCPSocket, :initialize, "TCPConnect.call(self, arguments, options)")
      replace(UDPSocket, :connect, "HostNames.address(arguments[0], arguments[1])")
      replace(UDPSocket, :bind, "HostNames.address(arguments[0], arguments[1])")
      # With three arguments, the third is a packed address, in which any byte may occur.
      replace(UDPSocket, :send, "HostNames.address(*(arguments.size > 3 ? arguments[2, 2] : [nil, nil]))")

      replace(Addrinfo, :getnameinfo, "HostNames.unless_numeric(arguments[0])")
      replace(socket, :getnameinfo, "HostNames.unless_numeric(arguments[1])")
      replace(IPSocket, :addr, "HostNames.socket_address(self, arguments[0])")
      replace(IPSocket, :peeraddr, "HostNames.socket_address(self, arguments[0])")
    end
  end
  private_constant :HostNamesPatch
end
