# frozen_string_literal: true

Ecosystem.library "grpc", requires: File.expand_path("../servers/grpc_service", __dir__), server: :grpc,
                          remark: "blocks the thread: `require \"heddle/offload/grpc\"`",
                          weak: ["waits at once", "10 ms sleeper", "timeout", "kill", "server dies"] do
  def connect = WaitService.rpc_stub_class.new("127.0.0.1:#{server.port}", :this_channel_is_insecure)

  def wait(client, seconds) = client.wait(Text.new(seconds.to_s))

  def usable?(client) = client.wait(Text.new("0.001")) == "0.001"

  def works(client) = [client.wait(Text.new("0.01")), client.count(Text.new("3")).to_a]
end

Ecosystem.offloaded "grpc", "grpc"
