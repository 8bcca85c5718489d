# frozen_string_literal: true

RSpec.describe "Rails in Puma with plugin :heddle" do
  include PumaServers

  cable_client = File.expand_path("../../support/cable_client.rb", __dir__)
  app = <<~'RUBY'
    # Rails up to 8.1 passes json's methods what json 3 does not take.
    gem "json", "< 3"
    begin
      require "rails"
      require "action_controller/railtie"
      require "action_cable/engine"
      require "websocket/driver"
    rescue LoadError
      exit! 2
    end
    require "heddle/rails"
    $gate = Thread::Queue.new
    class App < Rails::Application
      config.root = __dir__
      config.eager_load = false
      config.logger = Logger.new(nil)
      config.secret_key_base = "0" * 40
      config.hosts = nil
      config.action_cable.disable_request_forgery_protection = true
      config.action_cable.cable = { "adapter" => "async" }
    end
    class RoomChannel < ActionCable::Channel::Base
      def subscribed = stream_from("room")
      def say(data) = ActionCable.server.broadcast("room", data["text"])
    end
    class PagesController < ActionController::Base
      include ActionController::Live

      def events
        response.headers["content-type"] = "text/event-stream"
        response.headers["last-modified"] = "0"
        response.stream.write("data: first\n\n")
        $gate.pop
        response.stream.write("data: #{Fiber.scheduler.class}\n\n")
      ensure
        response.stream.close
      end

      def go = $gate.push(true) && head(:ok)
    end
    class WaitsController < ActionController::Base
      def show
        puts "a request waits"
        sleep
      end
    end
    # For a connection to /cable?early: after the response 101 has been sent, the connection opens only when the client's
    # next message has been parsed. That is what happens if the fiber is preempted in between.
    module OpensLate
      def parse(data) = super.tap { @parsed << true if @parsed }

      def start_driver
        @parsed = Thread::Queue.new if env["QUERY_STRING"] == "early"
        super
      end

      def write(data)
        super.tap { @parsed.pop if @parsed && @ready_state == ActionCable::Connection::ClientSocket::CONNECTING }
      end
    end
    ActionCable::Connection::ClientSocket.prepend(OpensLate)
    App.initialize!
    App.routes.draw do
      get "events", to: "pages#events"
      get "go", to: "pages#go"
      get "wait", to: "waits#show"
      mount ActionCable.server => "/cable"
    end
    run App
  RUBY

  share_server(app, library: "rails", env: { "RAILS_ENV" => "test" })

  it "streams events by ActionController::Live, on a fiber, while other requests are handled" do
    server.connect do |socket|
      socket.write("GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
      first = +""
      first << socket.readpartial(10_000) until first.include?("first")
      server.get("/go")
      second = +""
      second << socket.readpartial(10_000) until second.end_with?("0\r\n\r\n")
      expect(second).to include("data: Heddle::Scheduler")
    end
  end

  it "broadcasts by Action Cable to each subscriber" do
    messages = printed(<<~RUBY, library: "websocket/driver")
      require #{cable_client.inspect}
      clients = Array.new(2) { CableClient.new(#{server.port}) }
      clients.each { |client| client.subscribe("RoomChannel") }
      clients.first.perform("say", text: "hello")
      clients.each { |client| puts client.message }
    RUBY
    expect(messages).to eq "hello\n" * 2
  end

  it "keeps what a client of Action Cable sends after the response 101, and before the connection is open" do
    confirmed = printed(<<~RUBY, library: "websocket/driver")
      require #{cable_client.inspect}
      client = CableClient.new(#{server.port}, "/cable?early", await_welcome: false)
      puts client.subscribe("RoomChannel")["type"]
    RUBY
    expect(confirmed).to eq "confirm_subscription\n"
  end

  it "answers 503 to a request that force_shutdown_after ends" do
    grace = "@options[:pool_shutdown_grace_time] = #{PumaServer::LIMIT}"
    with_server(app, "force_shutdown_after 0.01\n#{grace}", env: { "RAILS_ENV" => "production" }) do |server|
      answer = Thread.new { server.request("GET /wait HTTP/1.0\r\n\r\n") }
      server.wait_for_log(/a request waits/)
      server.signal(:TERM)

      expect(answer.value[/\AHTTP\S+ (\d+)/, 1]).to eq "503"
    end
  end
end
