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
        puts "#{now} at a time"
        # All fibers are in use, so no request can tell the application to continue.
        sleep 0.001 until File.exist?("continue")
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
    with_server(app, "heddle fibers: 2\nactivate_control_app 'tcp://127.0.0.1:0', no_token: true") do |server|
      clients = Array.new(6) { Thread.new { server.get("/count") } }
      server.wait_for_log(/2 at a time/)
      server.wait_for_stats("pool_capacity" => 0)
      FileUtils.touch(File.join(server.folder, "continue"))
      clients.each(&:join)

      expect(server.get("/most")).to eq "2"
    end
  end

  it "let a request of a kept connection wait until fewer are handled" do
    with_server(app, "heddle fibers: 1\nactivate_control_app 'tcp://127.0.0.1:0', no_token: true") do |server|
      kept = server.connect
      request = "GET /hello HTTP/1.1\r\nhost: h\r\n\r\n"
      kept.write(request)
      kept.gets("hello")
      counted = Thread.new { server.get("/count") }
      server.wait_for_log(/1 at a time/)
      kept.write(request)
      server.wait_for_stats("backlog" => 1, "busy_threads" => 2)
      FileUtils.touch(File.join(server.folder, "continue"))

      expect([counted.value, kept.gets("hello")]).to match ["", /hello\z/]
    ensure
      kept&.close
    end
  end

  it "name the wrong option at the start" do
    with_server(app, "heddle fibers: 0") do |server|
      server.wait

      expect(server.log).to include "heddle fibers: must be an Integer from 1 to 1000000, not 0"
    end
  end

  {
    "in single mode" => "",
    "in cluster mode" => "workers 1\n",
    "in a cluster that forks workers" => "workers 1\nfork_worker\n"
  }.each do |mode, config|
    it "stop Puma at its start #{mode} if the ticker's signal is one that Puma handles" do
      with_server(app, "#{config}heddle ticker: :signal") do |server|
        expect([server.wait.exitstatus, server.log]).to match [1, /heddle signal: Puma handles USR2 itself.*ALRM/]
      end
    end
  end

  it "take a signal for the ticker that Puma does not handle" do
    with_server(app, %(heddle ticker: :signal, signal: "PROF")) do |server|
      expect(server.get("/")).to eq "hello"
    end
  end

  it "do nothing while the environment has HEDDLE=off: Puma serves with its threads" do
    shows_scheduler = "run ->(_env) { [200, {}, [Fiber.scheduler.inspect]] }"
    with_server(shows_scheduler, "threads 1, 2\nheddle fibers: 7", env: { "HEDDLE" => "off" }) do |server|
      expect([server.get("/"), server.log])
        .to match ["nil", /^Heddle: Puma serves with its threads, because HEDDLE=off$.*Max threads: 2$/m]
    end
  end

  it "hold if the environment has HEDDLE=on" do
    with_server(app, "heddle fibers: 7", env: { "HEDDLE" => "on" }) do |server|
      expect(server.log).to include "7 fibers"
    end
  end

  it "stop Puma at its start if the environment has HEDDLE with another value" do
    with_server(app, env: { "HEDDLE" => "0" }) do |server|
      server.wait

      expect(server.log).to include "HEDDLE=0: must be on or off (ArgumentError)"
    end
  end

  describe "about signals" do
    # The signals that the process handles, and that are accepted for a ticker.
    accepted = <<~RUBY
      $accepted = lambda do
        names = Signal.list.keys - %w[EXIT KILL STOP SEGV BUS ILL FPE VTALRM]
        names.select do |name|
          handler = trap(name, "DEFAULT")
          trap(name, handler) if handler
          handler.is_a?(Proc) && Heddle::PumaSupport::Settings.new(ticker: :signal, signal: name)
        rescue ArgumentError
          false
        end
      end
      after_booted { puts "accepted in the first process: \#{$accepted.call}" }
    RUBY
    application = "run ->(_env) { [200, {}, [$accepted.call.inspect]] }"

    ["", "workers 1\nfork_worker\n"].each do |mode|
      it "refuse all that a process of Puma handles#{" in a cluster" unless mode.empty?}" do
        with_server(application, mode + accepted) do |server|
          in_server = server.get("/")
          server.wait_for_log(/accepted in the first process: \[\]/)

          expect(in_server).to eq "[]"
        end
      end
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
