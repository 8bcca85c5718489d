# frozen_string_literal: true

# The server of http.rb with TLS, and a certificate that it signs itself, in the working directory: tls.rb PORT

require "openssl"

key = OpenSSL::PKey::EC.generate("prime256v1")
certificate = OpenSSL::X509::Certificate.new.tap do |made|
  made.version = 2
  made.serial = 1
  made.subject = made.issuer = OpenSSL::X509::Name.parse("/CN=localhost")
  made.public_key = key
  made.not_before = Time.now - 3600
  made.not_after = Time.now + 86_400
  extensions = OpenSSL::X509::ExtensionFactory.new(made, made)
  made.add_extension(extensions.create_extension("basicConstraints", "CA:TRUE", true))
  made.add_extension(extensions.create_extension("subjectAltName", "DNS:localhost,IP:127.0.0.1"))
  made.sign(key, "SHA256")
end
File.write("certificate.pem", certificate.to_pem)
File.write("key.pem", key.to_pem)
ARGV.push(File.expand_path("certificate.pem"), File.expand_path("key.pem"))
require_relative "http"
