# frozen_string_literal: true

RSpec.describe "heddle/rails" do
  include Libraries

  # An application in a temporary directory, with an action that runs the block `$action`.
  application = <<~RUBY
    require "action_controller/railtie"
    require "active_job/railtie"
    require "action_cable/engine"
    require "tmpdir"
    require "heddle/rails"

    class Current < ActiveSupport::CurrentAttributes
      attribute :user
    end

    class Application < Rails::Application
      config.root = Dir.mktmpdir
      config.eager_load = false
      config.load_defaults(Rails::VERSION::STRING.to_f)
      config.logger = Logger.new(nil)
      config.secret_key_base = "x" * 40
      config.hosts.clear
    end

    class PagesController < ActionController::Base
      def show = render(plain: instance_exec(&$action).inspect)
    end

    class StreamsController < ActionController::Base
      include ActionController::Live

      def show
        instance_exec(&$action)
      ensure
        response.stream.close
      end
    end

    def boot
      # Rails reads this file again when it reloads.
      Application.root.join("config").mkpath
      Application.root.join("config/routes.rb").write(<<~ROUTES)
        Rails.application.routes.draw { %w[page stream].each { |name| resource(name, only: :show) } }
      ROUTES
      Application.initialize!
    end

    def get(path)
      _, _, body = Application.call(Rack::MockRequest.env_for(path))
      parts = []
      body.each { |part| parts << part }
      parts.join
    ensure
      body&.close
    end
  RUBY

  let(:library) { "rails" }
  let(:preamble) { <<~RUBY }
    begin
      gem "actioncable"
      gem "activejob"
    rescue LoadError
      exit #{Libraries::MISSING}
    end
    #{application}
  RUBY

  database = <<~RUBY
    require "sqlite3"
    require "active_record/railtie"
    FileUtils.mkdir_p(Application.root.join("config"))
    Application.root.join("config/database.yml").write(<<~YAML)
      development: { adapter: sqlite3, pool: 3, database: \#{Application.root.join("database")} }
    YAML
    boot
  RUBY

  describe "the isolation level" do
    it "is set to :fiber, if the application has chosen none" do
      expect(printed("boot; p ActiveSupport::IsolatedExecutionState.isolation_level")).to eq ":fiber\n"
    end

    it "may be set to :fiber by the application" do
      expect(printed(<<~RUBY)).to eq ":fiber\n"
        Application.config.active_support.isolation_level = :fiber
        boot
        p ActiveSupport::IsolatedExecutionState.isolation_level
      RUBY
    end

    it "keeps the application from booting, if the application has chosen :thread" do
      expect(printed(<<~RUBY)).to match(/\Aconfig.active_support.isolation_level is :thread.* Set it to :fiber/)
        Application.config.active_support.isolation_level = :thread
        begin
          boot
        rescue Heddle::RailsSupport::ConfigurationError => e
          puts e.message
        end
      RUBY
    end
  end

  describe "a mounted Heddle::Web" do
    mounted = <<~RUBY
      require "heddle/web"
      def boot_with_page
        Rails.env = "production"
        Application.root.join("config").mkpath
        Application.root.join("config/routes.rb").write(<<~ROUTES)
          Rails.application.routes.draw { mount Heddle::Web => "/tools/heddle" }
        ROUTES
        Application.initialize!
      rescue Heddle::RailsSupport::ConfigurationError => e
        puts e.message
      end
    RUBY

    it "keeps the application from booting in production without Heddle::Web.authorize" do
      expect(printed("#{mounted}boot_with_page")).to match(/\AHeddle::Web is mounted without .*Heddle::Web\.authorize/)
    end

    it "answers with the route's prefix, with and without a slash at the end" do
      expect(printed(<<~RUBY)).to eq %(src="/tools/heddle/page.js"\n) * 2
        #{mounted}
        Heddle::Web.authorize { true }
        boot_with_page
        ["/tools/heddle", "/tools/heddle/"].each { |path| puts get(path)[/src=".*page.js"/] }
      RUBY
    end
  end

  describe "Heddle.spin in a request" do
    it "inherits copies of the CurrentAttributes, the time zone and the locale" do
      expect(printed(<<~RUBY)).to eq %([["ada", "Tokyo", :en, true], "ada"]\n)
        boot
        $action = lambda do
          Current.user = "ada"
          Time.zone = "Tokyo"
          I18n.locale = :en
          child = Heddle.spin do
            seen = [Current.user, Time.zone.name, I18n.locale, Rails.application.executor.active?]
            Current.user = "bob"
            seen
          end
          [Heddle.await(child), Current.user]
        end
        Heddle.run { puts get("/page") }
      RUBY
    end

    it "keeps its CurrentAttributes when the request ends" do
      expect(printed(<<~RUBY)).to eq "ada\n"
        boot
        gate = Queue.new
        $action = lambda do
          Current.user = "ada"
          $child = Heddle.spin(background: true) { gate.pop && Current.user }
        end
        Heddle.run do
          # The request runs on the fiber that then waits for the child.
          get("/page")
          gate << true
          puts Heddle.await($child)
        end
      RUBY
    end

    it "passes the name to Heddle, and the arguments to the block" do
      expect(printed(<<~RUBY)).to eq "true\n"
        boot
        $action = lambda do
          Heddle.await_all(
            Heddle.spin(name: "x") { |*list| [*list, Heddle.fibers.map(&:name).include?("x")] },
            Heddle.spin(1, { limit: 2 }, name: "y") { |*list| list }
          ) == [[true], [1, { limit: 2 }]]
        end
        Heddle.run { puts get("/page") }
      RUBY
    end

    it "takes nothing along outside of requests" do
      expect(printed(<<~RUBY)).to eq "[nil, false]\n"
        boot
        Heddle.run do
          Current.user = "ada"
          p Heddle.await(Heddle.spin { [Current.user, Rails.application.executor.active?] })
        end
      RUBY
    end

    it "shares no database connection, and gives its own back at its end" do
      expect(printed(<<~RUBY)).to eq "[true, 1]\n"
        #{database}
        $action = lambda do
          own = ActiveRecord::Base.lease_connection
          other = Heddle.await(Heddle.spin { ActiveRecord::Base.lease_connection })
          [own != other, ActiveRecord::Base.connection_pool.stat[:busy]]
        end
        Heddle.run { puts get("/page") }
      RUBY
    end
  end

  it "runs ActionController::Live on a fiber of the request's thread, with a middleware's CurrentAttributes" do
    expect(printed(<<~RUBY)).to eq "ada true\nada true\n"
      Application.config.middleware.use(Class.new do
        def initialize(app) = @app = app

        def call(env) = (Current.user = "ada") && @app.call(env)
      end)
      boot
      $action = lambda do
        2.times do
          response.stream.write("\#{Current.user} \#{Thread.current == Thread.main}\n")
          sleep(0)
        end
      end
      Heddle.run { print get("/stream") }
    RUBY
  end

  it "leaves Concurrent::Promises and Action Cable's workers the pools that they have without it" do
    expect(printed(<<~RUBY)).to eq "[Concurrent::CachedThreadPool, Concurrent::ThreadPoolExecutor]\n"
      boot
      p [Concurrent.global_io_executor.class, ActionCable.server.worker_pool.executor.class]
    RUBY
  end

  it "lets ActionDispatch::DebugLocks show fibers and threads" do
    expect(printed(<<~RUBY)).to match(/Thread 0 \[0x\h+ sleep\]  Sharing.*Thread 1 \[0x\h+ sleep\]  Sharing/m)
      boot
      locks = ActionDispatch::DebugLocks.new(->(_) { })
      gate, ready = Queue.new, Queue.new
      share = -> { ActiveSupport::Dependencies.interlock.running { ready << true && gate.pop } }
      thread = Thread.new(&share)
      Heddle.run do
        fiber = Heddle.spin(&share)
        2.times { ready.pop }
        Thread.pass until thread.stop?
        puts locks.call(Rack::MockRequest.env_for("/rails/locks")).last
        2.times { gate << true }
        Heddle.await(fiber)
      end
      thread.join
    RUBY
  end

  it "lets Heddle.run and spin work without an application" do
    expect(printed(<<~RUBY, preamble: "")).to eq "1\n"
      require "heddle/rails"
      p Heddle.run { Heddle.await(Heddle.spin { 1 }) }
    RUBY
  end

  describe "a message to Action Cable" do
    # A connection that remembers what it has received.
    connection = <<~RUBY
      boot
      # Rails 8 loads routes, and with them Action Cable's server, with the first request.
      ActionCable.server
      Connection = Struct.new(:received) do
        def receive(message) = received << message
      end
      connection = Connection.new([])
    RUBY

    it "is received if it is appended to the MessageBuffer while that is emptied for good" do
      expect(printed(<<~RUBY)).to eq %(["early"]\n)
        #{connection}
        gate = Queue.new
        buffer = ActionCable::Connection::MessageBuffer.new(connection)
        # Appending pauses when it has found that messages are still buffered.
        buffer.define_singleton_method(:buffer) { |message| gate.pop && super(message) }
        Heddle.run do
          fibers = [Heddle.spin { buffer.append("early") }, Heddle.spin { buffer.process! }]
          # Both have done what they can.
          sleep(0)
          gate << true
          Heddle.await_all(*fibers)
        end
        p connection.received
      RUBY
    end

    it "tells a connection of its beginning before its end, although both come at once" do
      expect(printed(<<~RUBY)).to eq "[:open, :close]\n"
        #{connection}
        gate = Queue.new
        env = Rack::MockRequest.env_for("/cable", "HTTP_CONNECTION" => "upgrade", "HTTP_UPGRADE" => "websocket",
                                        "HTTP_SEC_WEBSOCKET_KEY" => "x" * 24, "HTTP_SEC_WEBSOCKET_VERSION" => "13")
        target = Object.new
        target.define_singleton_method(:on_open) { gate.pop && connection.receive(:open) }
        target.define_singleton_method(:on_close) { |*| connection.receive(:close) }
        socket = ActionCable::Connection::ClientSocket.new(env, target, ActionCable.server.event_loop, [])
        Heddle.run do
          fibers = [Heddle.spin { socket.__send__(:open) }, Heddle.spin { socket.client_gone }]
          sleep(0)
          gate << true
          Heddle.await_all(*fibers)
        end
        p connection.received
      RUBY
    end
  end

  it "lets Active Job find the adapter :heddle" do
    expect(printed(<<~RUBY)).to eq "heddle jobs\n"
      Application.config.active_job.queue_adapter = :heddle
      boot
      class Work < ActiveJob::Base
        def perform = puts(Thread.current.name)
      end
      Work.perform_later
    RUBY
  end

  describe "a server" do
    it "says which connection pool is smaller than the number of fibers" do
      expect(printed(<<~RUBY)).to match(/"primary" has 3 connections, and up to 512 fibers.*with_connection/m)
        #{database}
        $stderr = $stdout
        Application.load_server
      RUBY
    end

    it "says nothing, if no more fibers ask for connections than the pool has" do
      expect(printed(<<~RUBY)).to eq ""
        Application.config.heddle.fibers = 3
        #{database}
        $stderr = $stdout
        Application.load_server
      RUBY
    end
  end

  it "reloads classes under load without a deadlock, and never under a running request" do
    expect(printed(<<~RUBY)).to eq %(["1"]\n)
      models = Application.root.join("app/models")
      models.mkpath
      Application.config.enable_reloading = true
      versions = 0
      change = lambda do
        file = Application.root.join("changed")
        file.write("class Widget; VERSION = \#{versions += 1}; end")
        File.utime(1_000_000_000, 1_000_000_000 + versions, file)
        file.rename(models.join("widget.rb"))
      end
      change.call
      boot
      seen = []
      $action = lambda do
        first = Widget
        sleep(a_moment)
        children = Array.new(2) { Heddle.spin { sleep(a_moment) && Widget } }
        seen |= [first::VERSION]
        [first, *Heddle.await_all(*children), Widget].uniq.size
      end
      Heddle.run(preempt: :all) do
        # Rails 8 draws the routes with the first request. Up to 8.1.3 it answers others with 404 meanwhile.
        get("/page")
        changing = Heddle.spin(background: true) { Heddle.every(0.005) { change.call } }
        sizes = []
        requests = Array.new(10) { Heddle.spin { sizes << get("/page") until seen.size > 5 } }
        Heddle.await_all(*requests)
        Heddle.stop(changing)
        p sizes.uniq
      end
    RUBY
  end
end
