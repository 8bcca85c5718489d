# frozen_string_literal: true

RSpec.describe "Connections of Puma with plugin :heddle" do
  include PumaServers

  app = <<~RUBY
    gate = Thread::Queue.new
    waiting = 0
    order = +""
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/wait"
        waiting += 1
        gate.pop
      when "/waiting" then next [200, {}, [waiting.to_s]]
      when "/open" then 2.times { gate << true }
      when "/order" then next [200, {}, [order]]
      else order << env["PATH_INFO"].delete("/")
      end
      [200, {}, []]
    end)
  RUBY

  def pipeline(*paths)
    *first, last = paths
    [*first.map { |path| "GET #{path} HTTP/1.1\r\nhost: h\r\n\r\n" },
     "GET #{last} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"].join
  end

  it "take turns after each request, although a client has sent several" do
    with_server(app, "heddle preempt: :none") do |server|
      clients = %w[a b].map do |name|
        Thread.new { server.request(pipeline("/wait", "/#{name}", "/#{name}", "/#{name}")) }
      end
      Timeout.timeout(PumaServer::LIMIT) { nil until server.get("/waiting") == "2" }
      server.get("/open")
      clients.each(&:join)

      expect(server.get("/order")).to eq("ababab").or eq("bababa")
    end
  end
end
