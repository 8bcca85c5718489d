# frozen_string_literal: true

require "openssl"

RSpec.describe "The options of Puma's plugin :heddle" do
  include PumaServers

  app = <<~'RUBY'
    now = most = 0
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/scheduler" then [200, {}, [Fiber.scheduler.inspect[/backend=\w+/]]]
      when "/count"
        now += 1
        most = [most, now].max
        sleep 0.05
        now -= 1
        [200, {}, []]
      when "/most" then [200, {}, [most.to_s]]
      else [200, {}, ["hello"]]
      end
    end)
  RUBY

  it "select the backend" do
    with_server(app, "heddle backend: :poll", env: { "HEDDLE_BACKEND" => nil }) do |server|
      expect(server.get("/scheduler")).to eq "backend=poll"
    end
  end

  it "limit how many requests are handled at a time" do
    with_server(app, "heddle fibers: 2") do |server|
      Array.new(6) { Thread.new { server.get("/count") } }.each(&:join)

      expect(server.get("/most")).to eq "2"
    end
  end

  it "name the wrong option at the start" do
    with_server(app, "heddle fibers: 0") do |server|
      server.wait

      expect(server.log).to include "heddle fibers: must be an Integer of at least 1, not 0"
    end
  end

  it "name an option that the scheduler does not know" do
    with_server(app, "heddle quanta: 1") do |server|
      server.wait

      expect(server.log).to match(/unknown keyword: :quanta \(ArgumentError\)/)
    end
  end

  it "hold for rackup, too" do
    arguments = %w[-s puma -p 0 config.ru]
    with_server(app, arguments:, env: { "PROGRAM" => "rackup" }) do |server|
      expect(server.log).to include "512 fibers"
    end
  end

  it "serve on a UNIX socket" do
    with_server(app, bind: "unix://FOLDER/socket") do |server|
      answer = UNIXSocket.open(File.join(server.folder, "socket")) do |socket|
        socket.write("GET / HTTP/1.0\r\n\r\n")
        socket.read
      end

      expect(answer).to end_with "hello"
    end
  end

  it "hold for an application whose requests and responses Rack::Lint checks" do
    with_server("use Rack::Lint\n#{app}") do |server|
      expect(server.get("/")).to eq "hello"
    end
  end

  it "hold for TLS" do
    certificate = <<~RUBY
      require "openssl"
      key = OpenSSL::PKey::RSA.new(2048)
      certificate = OpenSSL::X509::Certificate.new
      certificate.public_key = key
      certificate.not_before = Time.now
      certificate.not_after = Time.now + 3600
      certificate.sign(key, "SHA256")
      File.write("key.pem", key.to_pem)
      File.write("cert.pem", certificate.to_pem)
    RUBY
    with_server(app, certificate, bind: "ssl://127.0.0.1:0?key=FOLDER/key.pem&cert=FOLDER/cert.pem") do |server|
      answer = server.connect do |socket|
        tls = OpenSSL::SSL::SSLSocket.new(socket).connect
        tls.write("GET / HTTP/1.0\r\n\r\n")
        tls.read
      end

      expect(answer).to end_with "hello"
    end
  end

  it "leave a server alone that does not have the plugin" do
    output, errors, status = run_ruby(<<~'RUBY')
      begin
        require "puma"
      rescue LoadError
        exit 2
      end
      require "heddle/puma"
      server = Puma::Server.new(->(_env) { [200, {}, [Fiber.scheduler.inspect]] })
      port = server.add_tcp_listener("127.0.0.1", 0).addr[1]
      server.run
      socket = TCPSocket.new("127.0.0.1", port)
      socket.write("GET / HTTP/1.0\r\n\r\n")
      puts socket.read.split("\r\n\r\n").last
      server.stop(true)
    RUBY
    skip_or_fail_without("puma") if status.exitstatus == 2

    expect([output, errors]).to eq ["nil\n", ""]
  end
end
