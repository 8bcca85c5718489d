# frozen_string_literal: true

# TLS clients and a server, in tasks

require "openssl"
key = OpenSSL::PKey::RSA.new(2048)
certificate = OpenSSL::X509::Certificate.new.tap do |cert|
  cert.version = 2
  cert.serial = 1
  cert.subject = cert.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
  cert.public_key = key.public_key
  cert.not_before = Time.now - 60
  cert.not_after = Time.now + 3600
  cert.sign(key, OpenSSL::Digest.new("SHA256"))
end
context = OpenSSL::SSL::SSLContext.new.tap { |ssl| (ssl.key = key) && (ssl.cert = certificate) }
tcp = TCPServer.new("127.0.0.1", 0)
server = OpenSSL::SSL::SSLServer.new(tcp, context)
serving = task do
  3.times do
    server.accept.then do |client|
      task do
        client.write(client.gets.upcase * 1000) && client.close
      end
    end
  end
end
clients = Array.new(3) do |number|
  task do
    socket = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", tcp.addr[1])).tap(&:connect)
    socket.puts("client #{number}")
    (socket.read == "CLIENT #{number}\n" * 1000).tap { socket.close }
  end
end
say clients.map(&:value)
serving.join
idle = OpenSSL::SSL::SSLSocket.new(TCPSocket.new("127.0.0.1", tcp.addr[1]))
say attempt { Timeout.timeout(0.05) { idle.connect } }
