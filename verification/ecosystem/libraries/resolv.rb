# frozen_string_literal: true

require "resolv"

Ecosystem.library "Resolv", requires: "resolv", version: -> { Resolv::VERSION }, server: :dns do
  def connect
    Resolv::DNS.new(nameserver_port: [["127.0.0.1", server.port]], search: [], ndots: 1)
               .tap { |client| client.timeouts = 10 }
  end

  def wait(client, seconds) = client.getaddress("slow#{seconds.to_s.tr(".", "-")}.test")

  def usable?(client) = client.getaddress("seven.test").to_s == "192.0.2.7"

  def works(client) = %w[a.test b.test].map { |name| client.getaddresses(name).map(&:to_s) }
end
