# frozen_string_literal: true

require "json"
require "stringio"

# Requests to Heddle::Web without a server, mounted at /heddle.
module WebRequests
  Answer = Struct.new(:status, :headers, :body) do
    # @return [Object] what the JSON says
    def data = JSON.parse(body, symbolize_names: true)
  end

  # @param path [String] below the mount point, with the query
  # @param app [#call]
  # @param env [Hash{String => String}] further parts of the Rack environment
  # @return [Answer] with the whole body
  def web(path, method = "GET", app: web_app, **env)
    path, query = path.split("?", 2)
    env = { "REQUEST_METHOD" => method, "SCRIPT_NAME" => "/heddle", "PATH_INFO" => path, "QUERY_STRING" => query.to_s,
            "HTTP_HOST" => "localhost", "rack.url_scheme" => "http", "rack.input" => StringIO.new,
            **env.transform_keys(&:to_s) }
    status, headers, body = app.call(env)
    text = +""
    body.each { |chunk| text << chunk }
    body.close if body.respond_to?(:close)
    Answer.new(status, headers, text)
  end

  # Runs the block under a scheduler. Requests may start a fiber that measures the lag, which is ended here.
  def run_with_web(**)
    Heddle.run(**) do
      yield
    ensure
      Heddle.const_get(:LagProbe).of(Fiber.scheduler)&.stop
    end
  end

  # @return [Hash] what a report says of this thread's scheduler
  def own_scheduler(path)
    web(path).data[:schedulers].find { |each| each[:id] == Fiber.scheduler.object_id }
  end

  # @yield as in Heddle::Web.authorize
  # @return [Heddle::Web] one of its own, as Heddle::Web is the same for all examples
  def web_app(variables: { "RACK_ENV" => "test" }, &rule)
    Heddle::Web.new(Heddle::Web.const_get(:Access).new(rule, variables:))
  end
end
