# frozen_string_literal: true

require_relative "http"

# Like Http, but the server reads line by line, as Net::HTTP, Puma, Redis and SMTP do: Ruby reads into a buffer of the
# IO's own.
class HttpLines < Http
  END_OF_HEAD = "\r\n"

  private

  def converse(socket)
    loop do
      nil until socket.readline == END_OF_HEAD
      socket.write(RESPONSE)
      yield
    end
  end
end
