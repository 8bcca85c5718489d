# frozen_string_literal: true

# A gRPC server: grpc.rb PORT

require_relative "grpc_service"

# Answers a number after that many seconds, or with all numbers below it.
class Service < WaitService
  def wait(request, _call)
    sleep(Float(request))
    request
  end

  def count(request, _call) = Array.new(Integer(request)) { |number| Text.new(number.to_s) }.each
end

server = GRPC::RpcServer.new(pool_size: 30)
server.add_http2_port("127.0.0.1:#{ARGV.fetch(0)}", :this_port_is_insecure)
server.handle(Service.new)
server.run
