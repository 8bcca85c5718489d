# frozen_string_literal: true

Ecosystem.library "typhoeus", server: :http, remark: "blocks the thread: `require \"heddle/offload/typhoeus\"`",
                              weak: ["waits at once", "10 ms sleeper", "timeout", "kill", "server dies"] do
  def wait(_client, seconds) = get("/sleep/#{seconds}")

  def usable?(_client) = get("/") == "hello"

  def works(_client)
    hydra = Typhoeus::Hydra.new
    requests = %w[/ /chunks/3].map { |path| Typhoeus::Request.new(url(path)).tap { |request| hydra.queue(request) } }
    hydra.run
    [requests.map { |request| request.response.body }, get("/")]
  end

  def get(path)
    response = Typhoeus.get(url(path))
    response.success? ? response.body : raise(IOError, response.return_message)
  end

  def url(path) = "http://127.0.0.1:#{server.port}#{path}"
end

Ecosystem.offloaded "typhoeus", "typhoeus"
