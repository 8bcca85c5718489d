# frozen_string_literal: true

RSpec.describe "Rails in Puma with plugin :heddle" do
  include Libraries

  cable_client = File.expand_path("../../support/cable_client.rb", __dir__)
  app = <<~'RUBY'
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
      def say(data) = ActionCable.server.broadcast("room", "#{data["text"]} #{Fiber.scheduler.class}")
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
    App.initialize!
    App.routes.draw do
      get "events", to: "pages#events"
      get "go", to: "pages#go"
      mount ActionCable.server => "/cable"
    end
    run App
  RUBY

  before(:context) do
    @server = PumaServer.new(app, "", env: { "RAILS_ENV" => "test" })
  rescue PumaServer::Missing
    @server = nil
  end

  after(:context) { @server&.stop }

  before { skip_or_fail_without("rails") unless @server }

  it "streams events by ActionController::Live, on a fiber, while other requests are handled" do
    @server.connect do |socket|
      socket.write("GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n")
      first = socket.readpartial(10_000) until first&.include?("first")
      @server.get("/go")
      second = +""
      second << socket.readpartial(10_000) until second.end_with?("0\r\n\r\n")
      expect(second).to include("data: Heddle::Scheduler")
    end
  end

  it "broadcasts by Action Cable to each subscriber" do
    messages = output_with("websocket/driver", <<~RUBY)
      require #{cable_client.inspect}
      clients = Array.new(2) { CableClient.new(#{@server.port}) }
      clients.each { |client| client.subscribe("RoomChannel") }
      clients.first.perform("say", text: "hello")
      clients.each { |client| puts client.message }
    RUBY
    expect(messages).to eq "hello Heddle::Scheduler\n" * 2
  end
end
