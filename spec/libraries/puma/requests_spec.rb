# frozen_string_literal: true

RSpec.describe "A request of Puma with plugin :heddle" do
  include PumaServers

  describe "that has spun fibers" do
    app = <<~'RUBY'
      gates = Hash.new { |all, name| all[name] = Thread::Queue.new }
      running = 0
      run(lambda do |env|
        key = env["QUERY_STRING"]
        gate = Heddle.without_preemption { gates[key] }
        case env["PATH_INFO"]
        when "/spin"
          Heddle.spin do
            running += 1
            gate.pop
            raise "from a fiber"
          ensure
            running -= 1
          end
          Heddle.snooze
          [200, {}, ["spun"]]
        when "/late"
          Heddle.spin do
            opened = gate.pop
          ensure
            # Also if it is stopped.
            gate.pop unless opened
            raise "after the response"
          end
          Heddle.snooze
          [200, {}, ["early"]]
        when "/fail"
          Heddle.spin do
            running += 1
            sleep
          ensure
            running -= 1
          end
          Heddle.snooze until running.positive?
          raise "of the request"
        when "/open"
          gate << true
          [200, {}, ["opened"]]
        else [200, {}, ["#{running} run"]]
        end
      end)
    RUBY

    ["", "fiber_per_request true"].each do |config|
      it "has ended them before the connection's next request begins#{", with #{config}" unless config.empty?}" do
        with_server(app, config) do |server|
          answers = server.connect do |socket|
            %w[/spin?a /running].map do |path|
              socket.write("GET #{path} HTTP/1.1\r\nhost: h\r\n\r\n")
              socket.readpartial(1000).tap { server.get("/open?a") }.split("\r\n").values_at(0, -1)
            end
          end

          expect(answers).to eq [["HTTP/1.1 200 OK", "spun"], ["HTTP/1.1 200 OK", "0 run"]]
        end
      end
    end

    it "stops them if the application raises an error, although Puma answers that", :regression do
      with_server(app, "activate_control_app 'tcp://127.0.0.1:0', no_token: true") do |server|
        answer = server.request("GET /fail HTTP/1.0\r\n\r\n")
        server.wait_for_stats("fibers" => 0)

        expect([answer, server.get("/running")]).to match [/ 500 .*of the request/m, "0 run"]
      end
    end

    it "has its whole answer before they end, and what they raise then is logged" do
      with_server(app) do |server|
        # The answer ends with the connection.
        answer = server.request("GET /late?b HTTP/1.0\r\n\r\n")
        log = server.log.dup
        server.get("/open?b")
        server.wait_for_log(%r{A fiber of GET /late.*after the response})

        expect([answer, log]).to match [/200 OK.*early\z/m, /\A((?!after the response).)*\z/m]
      end
    end
  end

  # To the application the thread is the request's alone.
  describe "that uses what its thread has" do
    app = <<~'RUBY'
      gate = Thread::Queue.new
      waiting = 0
      run(lambda do |env|
        thread = Thread.current
        case env["PATH_INFO"]
        when "/script"
          script = lambda do
            thread = Thread.current
            [
              thread.thread_variable_get(:server), thread.thread_variable_set(:mine, 1), thread.thread_variable_get("mine"),
              thread.thread_variable?(:mine), thread.thread_variable_set("mine", nil), thread.thread_variable?("mine"),
              thread.thread_variable_set(:server, 2), thread.thread_variables.sort,
              Fiber.new { thread.thread_variable_get(:server) }.resume, (thread.thread_variable_get(5) rescue $!.class),
              (thread.thread_variable_set(nil, 5) rescue $!.class)
            ]
          end
          expected = Thread.new { Thread.current.thread_variable_set(:server, 1) && script.call }.value
          found = script.call
          [200, {}, [found == expected ? "equal" : "#{found} instead of #{expected}"]]
        when "/open"
          waiting.times { gate << true } if waiting == 3
          [200, {}, [waiting.to_s]]
        else
          thread.thread_variable_set(:user, env["PATH_INFO"])
          waiting += 1
          gate.pop
          seen = [thread.thread_variable_get(:user), Heddle.await(Heddle.spin { thread.thread_variable_get(:user) })]
          [200, {}, [(seen.uniq - [env["PATH_INFO"]]).inspect]]
        end
      end)
    RUBY
    config = "before_thread_start { Thread.current.thread_variable_set(:server, 1) }\n"

    def mixed(server)
      clients = %w[/alice /bob /carol].map { |path| Thread.new { server.get(path) } }
      Timeout.timeout(PumaServer::LIMIT) { nil until server.get("/open") == "3" }
      clients.map(&:value)
    end

    it "has thread variables of its own, its fibers included, and sees those of the server" do
      with_server(app, config) do |server|
        expect([server.get("/script"), mixed(server), server.get("/script")]).to eq ["equal", ["[]"] * 3, "equal"]
      end
    end

    it "shares them with other requests if the option says so" do
      with_server(app, "heddle thread_variables: :shared\n#{config}") do |server|
        expect(mixed(server).uniq).not_to eq ["[]"]
      end
    end
  end

  describe "in which another thread raises" do
    app = <<~RUBY
      threads = Thread::Queue.new
      raised = Thread::Queue.new
      run(lambda do |env|
        request = Thread.current
        error = [ArgumentError, "from a thread"]
        case env["PATH_INFO"]
        when "/waits" then Thread.new { request.raise(*error) } && sleep
        when "/computes" then Thread.new { request.raise(*error) } && loop { nil }
        when "/ends"
          go = Thread::Queue.new
          threads << [go, Thread.new { go.pop && raised << request.raise(*error) }]
        when "/raise-late"
          threads.pop.first << true
          raised.pop
        end
        [200, {}, ["survived"]]
      end)
    RUBY
    share_server(app)

    it "fails by the exception, whatever it does, if it has started the thread" do
      answers = %w[/waits /computes].map { |path| server.request("GET #{path} HTTP/1.0\r\n\r\n") }

      expect(answers).to all match(/ 500 .*from a thread/m)
    end

    it "is spared what the thread of a request raises that has ended" do
      # On one connection, so that the first request has ended when the second begins.
      answer = server.request("GET /ends HTTP/1.1\r\nhost: h\r\n\r\nGET /raise-late HTTP/1.0\r\n\r\n")
      server.wait_for_log(/after that request's end: nothing is raised/)

      expect(answer.scan("survived").size).to eq 2
    end
  end

  describe "with ActiveSupport, without Rails" do
    load = <<~RUBY
      begin
        require "active_support"
        require "active_support/isolated_execution_state"
      rescue LoadError
        exit 2
      end
    RUBY
    app = <<~RUBY
      gate = Thread::Queue.new
      waiting = 0
      run(lambda do |env|
        case path = env["PATH_INFO"]
        when "/load"
          require "active_support"
          require "active_support/isolated_execution_state"
        when "/open" then waiting.times { gate << true } if waiting == 2
        else
          ActiveSupport::IsolatedExecutionState[:user] = path
          waiting += 1
          gate.pop
          next [200, {}, [ActiveSupport::IsolatedExecutionState[:user]]]
        end
        [200, {}, [waiting.to_s]]
      end)
    RUBY

    # Whether the application loads it at once or later.
    { "at the start" => load + app, "later" => app }.each do |time, program|
      it "keeps its state apart if that is loaded #{time}" do
        with_server(program) do |server|
          server.get("/load")
          clients = %w[/alice /bob].map { |user| Thread.new { server.get(user) } }
          Timeout.timeout(PumaServer::LIMIT) { nil until server.get("/open") == "2" }

          expect([clients.map(&:value), server.log]).to match [%w[/alice /bob], /^! Heddle: .*It is :fiber now/]
        end
      end
    end
  end

  it "refuses to start the server with another rack-timeout, and says what to write instead" do
    refusal = /\Arack-timeout .* raises into the thread of a request, .* Timeout\.timeout\(15\) { app\.call\(env\) }$/
    expect(printed(<<~RUBY, library: %w[puma rack-timeout])).to match(refusal)
      require "puma/plugin/heddle"
      require "puma/configuration"
      require "puma/log_writer"
      Rack::Timeout::Scheduler::Timeout.alias_method(:limit, :timeout)
      Rack::Timeout::Scheduler::Timeout.remove_method(:timeout)
      options = Puma::Configuration.new { |config| config.heddle(preempt: :all) }.tap(&:clamp).final_options
      server = Puma::Server.new(->(_) { [200, {}, []] }, nil, options.merge(log_writer: Puma::LogWriter.null))
      begin
        server.run
      rescue Heddle::Error => e
        puts e.message
      end
    RUBY
  end

  describe "with rack-timeout" do
    app = <<~RUBY
      begin
        require "rack-timeout"
      rescue LoadError
        exit 2
      end
      Rack::Timeout::Logger.disable
      use Rack::Timeout, service_timeout: 0.01
      run(lambda do |env|
        case env["PATH_INFO"]
        when "/waits" then sleep
        when "/computes" then loop { nil }
        when "/awaits" then Heddle.await(Heddle.spin { sleep })
        else next [200, {}, ["survived"]]
        end
      end)
    RUBY
    share_server(app, library: "rack-timeout")

    it "fails by its time limit, and no other request does" do
      answers = %w[/waits /computes /awaits].map { |path| server.request("GET #{path} HTTP/1.0\r\n\r\n") }

      expect([answers, server.get("/")]).to match [all(match(/ 500 .*ran for longer than 10ms/m)), "survived"]
    end
  end

  describe "with sentry-ruby" do
    app = <<~RUBY
      begin
        require "sentry-ruby"
      rescue LoadError
        exit 2
      end
      events = Thread::Queue.new
      transport = Class.new(Sentry::Transport) { define_method(:send_event) { |event| events << event.user } }
      Sentry.init do |config|
        config.dsn = "http://key@127.0.0.1:9/1"
        config.background_worker_threads = 0
        config.transport.transport_class = transport
        # It has another name since 6.0.
        config.public_send(config.respond_to?(:sdk_logger=) ? :sdk_logger= : :logger=, Logger.new(nil))
      end
      use Sentry::Rack::CaptureExceptions
      gate = Thread::Queue.new
      waiting = 0
      run(lambda do |env|
        case env["PATH_INFO"]
        when "/events" then next [200, {}, [Array.new(events.size) { events.pop[:id] }.sort.join(" ")]]
        when "/open"
          waiting.times { gate << true } if waiting == 6
          next [200, {}, [waiting.to_s]]
        end
        Sentry.set_user(id: env["PATH_INFO"])
        waiting += 1
        gate.pop
        raise "the application's error"
      end)
    RUBY
    share_server(app, library: "sentry-ruby")

    it "is reported with its own user" do
      users = Array.new(6) { |number| "/user#{number}" }
      clients = users.map { |user| Thread.new { server.get(user) } }
      Timeout.timeout(PumaServer::LIMIT) { nil until server.get("/open") == "6" }
      clients.each(&:join)

      expect(server.get("/events").split).to eq users
    end
  end
end
