# frozen_string_literal: true

require "grpc"
require_relative "../offload"

return unless Heddle.supported?

module Heddle
  module Offload # :nodoc:
    # Each call of a gRPC client waits in `GRPC::Core::Call#run_batch`, which blocks the thread. Streams call it for
    # each message, so their blocks run in the fiber.
    module GrpcCalls
      # @api private
      def run_batch(...) = Offload.call { super }
    end
    private_constant :GrpcCalls

    AdapterPart.new(
      "grpc", ::GRPC::VERSION,
      right_with: "1.51.1", without: "a call of a gRPC client blocks all fibers of its thread",
      overrides: { "GRPC::Core::Call" => GrpcCalls }
    ).install
  end
end
