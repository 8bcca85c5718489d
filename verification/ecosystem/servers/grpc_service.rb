# frozen_string_literal: true

require "grpc"

# A message that is a string, so that no compiler for protocol buffers is needed.
class Text < String
  def self.encode(text) = text

  def self.decode(text) = new(text)
end

# The service of the server and its clients.
class WaitService # rubocop:disable Style/OneClassPerFile -- the message is part of the service
  include GRPC::GenericService

  self.service_name = "ecosystem.Wait"
  self.marshal_class_method = :encode
  self.unmarshal_class_method = :decode

  rpc :Wait, Text, Text
  rpc :Count, Text, stream(Text)
end
