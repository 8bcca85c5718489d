# frozen_string_literal: true

RSpec.describe "A request of Puma with plugin :heddle that ends its thread" do
  include PumaServers

  app = <<~'RUBY'
    gates = Hash.new { |all, name| all[name] = Thread::Queue.new }
    ends = {
      "/kill" => -> { Thread.current.kill },
      "/terminate" => -> { Thread.current.terminate },
      "/instance-exit" => -> { Thread.current.exit },
      "/exit" => -> { Thread.exit },
      "/class-kill" => -> { Thread.kill(Thread.current) }
    }
    run(lambda do |env|
      case env["PATH_INFO"]
      when "/wait"
        gate = gates[env["QUERY_STRING"]]
        puts "waits for #{env["QUERY_STRING"]}"
        gate.pop
      when "/open" then gates[env["QUERY_STRING"]] << true
      when "/within" then Enumerator.new { Thread.exit }.next
      when "/raise" then Thread.current.raise(ArgumentError, "from the request")
      when "/child" then Heddle.await(Heddle.spin { Thread.exit })
      else
        begin
          ends.fetch(env["PATH_INFO"]).call
        ensure
          puts "ensure of #{env["PATH_INFO"]}"
        end
      end
      [200, {}, ["survived"]]
    end)
  RUBY
  share_server(app)

  %w[/kill /terminate /instance-exit /exit /class-kill].each do |path|
    it "gets no answer, and lets the other requests run (#{path})" do
      bystander = Thread.new { server.get("/wait?#{path}") }
      server.wait_for_log(/^waits for #{path}$/)
      answer = server.request("GET #{path} HTTP/1.0\r\n\r\n")
      server.get("/open?#{path}")

      expect([answer, bystander.value]).to eq ["", "survived"]
    end

    it "runs its ensure clauses, and is named in the log without its query (#{path})" do
      server.get("#{path}?token=secret")
      line = "! Heddle: GET #{path} has called Thread#kill, which ends its fiber without an answer"

      expect { server.wait_for_log(/^#{line}$.*^ensure of #{path}$/m) }.not_to raise_error
    end
  end

  it "fails alone if it raises in its own thread, and lets the other requests run" do
    bystander = Thread.new { server.get("/wait?raise") }
    server.wait_for_log(/^waits for raise$/)
    answer = server.request("GET /raise HTTP/1.0\r\n\r\n")
    server.get("/open?raise")

    expect([answer, bystander.value]).to match [/ 500 .*from the request.*ArgumentError/m, "survived"]
  end

  it "fails with an error if another of its fibers has resumed the one that ends the thread" do
    expect(server.request("GET /within HTTP/1.0\r\n\r\n")).to match(/ 500 .*was resumed by another fiber.*ThreadError/m)
  end

  it "survives if a fiber that it has spun ends the thread" do
    expect(server.get("/child")).to eq "survived"
  end

  it "does not let Heddle::Stop appear in the log" do
    server.get("/exit")
    server.wait_for_log(%r{GET /exit has called})

    expect(server.log).not_to include "Heddle::Stop"
  end

  it "gets no answer with Puma's option fiber_per_request, either" do
    with_server(app, "fiber_per_request true") do |server|
      expect([server.request("GET /exit HTTP/1.0\r\n\r\n"), server.get("/open")]).to eq ["", "survived"]
    end
  end

  describe "by an exception after the application has returned" do
    late = <<~'RUBY'
      gates = Hash.new { |all, name| all[name] = Thread::Queue.new }
      raises = { "/exit" => -> { exit }, "/abort" => -> { abort "late" }, "/interrupt" => -> { raise Interrupt },
                 "/term" => -> { raise SignalException, "TERM" } }
      body = Class.new do
        define_method(:initialize) { |work| @work = work }
        define_method(:each) do |&write|
          write.call("begun")
          @work.call
        end
      end
      run(lambda do |env|
        case env["PATH_INFO"]
        when "/wait"
          gate = gates[env["QUERY_STRING"]]
          puts "waits for #{env["QUERY_STRING"]}"
          gate.pop
        when "/open" then gates[env["QUERY_STRING"]] << true
        when "/after-reply" then env["rack.after_reply"] << -> { exit }
        else next [200, {}, body.new(raises.fetch(env["PATH_INFO"]))]
        end
        [200, {}, ["answered"]]
      end)
    RUBY
    share_server(late)

    %w[/exit /abort /interrupt /term /after-reply].each do |path|
      it "ends its own connection, and is named in the log (#{path})" do
        bystander = Thread.new { server.get("/wait?#{path}") }
        server.wait_for_log(/^waits for #{path}$/)
        server.get(path)
        server.wait_for_log(/^! Heddle: GET #{path} has raised .* which ends its connection$/)
        server.get("/open?#{path}")

        expect(bystander.value).to eq "answered"
      end
    end
  end

  describe "by an error of a fiber, with Thread.abort_on_exception" do
    aborting = <<~RUBY
      Thread.abort_on_exception = true
      waits = Thread::Queue.new
      run(lambda do |env|
        case env["PATH_INFO"]
        when "/fiber" then Fiber.schedule { raise "from a fiber" }
        when "/thread" then Thread.new { raise "from a thread" }
        end
        puts "a request waits"
        waits.pop
      end)
    RUBY

    %w[fiber thread].each do |what|
      it "ends the server as plain Puma's, and waits for no other request (a #{what})", :regression do
        with_server(aborting) do |server|
          waiting = Thread.new { server.get("/wait") }
          server.wait_for_log(/^a request waits$/)
          server.request("GET /#{what} HTTP/1.0\r\n\r\n")
          waiting.join
          status = server.wait

          expect([status.exitstatus, server.log]).to match [1, /: from a #{what} \(RuntimeError\)/]
        end
      end
    end
  end

  describe "when a thread that no request has started raises in the thread of all requests" do
    raising = <<~RUBY
      targets = Thread::Queue.new
      Thread.new { targets.pop.raise(ArgumentError, "from a thread") }
      run(lambda do |env|
        if env["PATH_INFO"] == "/raise"
          targets << Thread.current
        else
          puts "a request waits"
        end
        # The server accepts no request any more that could tell it.
        sleep 0.001 until env["PATH_INFO"] == "/raise" || File.exist?("continue")
        [200, {}, ["answered"]]
      end)
    RUBY

    it "ends the server when the requests under way are answered, and names the exception and the requests" do
      with_server(raising) do |server|
        waiting = Thread.new { server.get("/wait") }
        server.wait_for_log(/^a request waits$/)
        raising = server.get("/raise")
        server.wait_for_log(/stops the server/)
        FileUtils.touch(File.join(server.folder, "continue"))
        status = server.wait

        expect([raising, waiting.value, status.exitstatus, server.log]).to match [
          "answered", "answered", 1,
          %r{has raised #<ArgumentError: from a thread>.* stops the server. Requests under way: .*GET /wait}
        ]
      end
    end

    it "ends the server and names the exception, too, if the acceptor has not waited yet" do
      application = <<~RUBY
        Puma::Server.prepend(Module.new do
          def handle_servers
            thread = Thread.current
            raised = false
            Thread.new do
              sleep 0.001 until File.exist?("continue")
              thread.raise(ArgumentError, "from a thread")
              raised = true
            end
            Heddle.without_preemption { nil until raised }
            super
          end
        end)
        run ->(_) { [200, {}, []] }
      RUBY
      with_server(application) do |server|
        FileUtils.touch(File.join(server.folder, "continue"))

        expect([server.wait.exitstatus, server.log]).to match [
          1, /has raised #<ArgumentError: from a thread>.* stops the server/
        ]
      end
    end
  end
end
