# frozen_string_literal: true

# Serves a rackup file as Falcon does it in one process, without Heddle: `ruby async_http.rb config.ru http://host:port`.
require "async"
require "async/http/endpoint"
require "async/http/server"
require "protocol/rack"
require "rack"

# Rack 3 returns the application, Rack 2 its options besides.
application, = Rack::Builder.parse_file(ARGV.fetch(0))
endpoint = Async::HTTP::Endpoint.parse(ARGV.fetch(1))
Sync { Async::HTTP::Server.new(Protocol::Rack::Adapter.new(application), endpoint).run.wait }
