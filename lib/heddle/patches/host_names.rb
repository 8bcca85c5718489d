# frozen_string_literal: true

module Heddle # :nodoc:
  # Makes Ruby's methods for host names ask {HostNames} whether to call the hook or to run in a thread.
  #
  # The methods are replaced. Prepended modules would break `resolv-replace` and similar libraries: they alias the
  # method that they find and call it by the alias, which with a prepended module recurses without end.
  module HostNamesPatch
    # Replaces a method.
    #
    # @param owner [Module]
    # @param name [Symbol] the method
    # @param rule [Symbol] the method of {HostNames} that decides; the old method is its block
    # @param expressions [Array<String>] the rule's arguments, as Ruby code that may use `arguments` and `options`
    def self.replace(owner, name, rule, *expressions)
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

          HostNames.#{rule}(#{expressions.join(", ")}) { #{kept}(*arguments, **options) }
        end
      RUBY
    end

    addrinfo, socket, ip_socket = [Addrinfo, Socket, IPSocket].map(&:singleton_class)
    replace(addrinfo, :getaddrinfo, :address_list, "arguments", "options")
    replace(addrinfo, :tcp, :address, "arguments[0]", "arguments[1]")
    replace(addrinfo, :udp, :address, "arguments[0]", "arguments[1]")
    replace(addrinfo, :ip, :address, "arguments[0]", "nil")
    replace(socket, :getaddrinfo, :address_list, "arguments", "options")
    replace(socket, :sockaddr_in, :address, "arguments[1]", "arguments[0]")
    replace(socket, :pack_sockaddr_in, :address, "arguments[1]", "arguments[0]")
    replace(ip_socket, :getaddress, :address, "arguments[0]", "nil")
    replace(TCPServer, :initialize, :address, "*(arguments.size > 1 ? arguments.first(2) : [nil, nil])")
    replace(UDPSocket, :connect, :address, "arguments[0]", "arguments[1]")
    replace(UDPSocket, :bind, :address, "arguments[0]", "arguments[1]")
    replace(UDPSocket, :send, :address, "arguments[2]", "arguments[3]")

    replace(Addrinfo, :getnameinfo, :unless_numeric, "arguments[0]")
    replace(socket, :getnameinfo, :unless_numeric, "arguments[1]")
    replace(IPSocket, :addr, :socket_address, "self", "arguments[0]")
    replace(IPSocket, :peeraddr, :socket_address, "self", "arguments[0]")
  end
  private_constant :HostNamesPatch
end
