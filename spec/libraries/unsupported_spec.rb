# frozen_string_literal: true

# HEDDLE_UNSUPPORTED pretends a system without the extension. `rake package:check_without_extension` installs the gem
# without it.
RSpec.describe "Heddle without its extension" do
  include Libraries

  let(:preamble) { "" }
  let(:environment) { { "HEDDLE_UNSUPPORTED" => "1" } }

  it "says that it is not supported, and raises Unsupported, with what would be right, from what needs a scheduler" do
    expect(printed(<<~RUBY, library: "heddle/core_ext")).to eq "false\n#{"Heddle::Unsupported: true\n" * 6}[1, 2]\n"
      p Heddle.supported?
      calls = [-> { Heddle.run {} }, -> { Heddle.spin {} }, -> { Heddle::Scheduler.new(preempt: :all) },
               -> { YieldingFiber.schedule {} }, -> { Heddle.map([]) {} }, -> { spin {} }]
      calls.each do |call|
        call.call
      rescue StandardError => e
        puts "\#{e.class}: \#{e.message.match?(/switched off by HEDDLE_UNSUPPORTED. .* Linux container: docker run/)}"
      end
      p [Heddle.without_preemption { 1 }, Heddle.annotate("name") { 2 }]
    RUBY
  end

  it "runs the calls of Heddle::Offload in place, and leaves their libraries as they are" do
    expect(printed(<<~RUBY, library: "sqlite3")).to eq "true\n1\n"
      changed = -> { SQLite3::Database.ancestors.first != SQLite3::Database }
      before = changed.call
      require "heddle/offload/sqlite3"
      p changed.call == before
      p Heddle::Offload.call { 1 }
    RUBY
  end

  # Each prints one line on `$stderr`, and then what runs on threads.
  {
    "heddle/puma" => ["puma", <<~RUBY, "Puma serves with its threads", "200 true"],
      require "puma/plugin/heddle"
      require "puma/configuration"
      options = Puma::Configuration.new { |config| config.heddle(fibers: 9, preempt: :all) }.tap(&:clamp).final_options
      application = ->(_) { [200, {}, [Fiber.scheduler.nil?.to_s]] }
      server = Puma::Server.new(application, nil, options.merge(log_writer: Puma::LogWriter.null))
      port = server.add_tcp_listener("127.0.0.1", 0).addr[1]
      server.run
      require "net/http"
      response = Net::HTTP.get_response("127.0.0.1", "/", port)
      puts "\#{response.code} \#{response.body}"
      server.stop(true)
    RUBY
    "heddle/sidekiq" => ["sidekiq", "p Sidekiq.default_configuration.default_capsule.fibers!(tick: 0.01).fibers?",
                         "Sidekiq's capsules keep their threads", "false"],
    "active_job/queue_adapters/heddle_adapter" => ["active_job", <<~RUBY, "Active Job's jobs run on threads", ":done"],
      class Work < ActiveJob::Base
        self.logger = nil
        self.queue_adapter = ActiveJob::QueueAdapters::HeddleAdapter.new(fibers: 3, limits: { "x" => 1 }, drain: 1)
        def perform = QUEUE << :done
      end
      QUEUE = Queue.new
      Work.perform_later
      p QUEUE.pop
    RUBY
    "heddle/async" => ["async", "Heddle::Async.default!(preempt: :all)\nAsync { p Fiber.scheduler.class }",
                       "Async keeps its own schedulers", "Async::Reactor"],
    "heddle/rails" => ["rails", <<~RUBY, "Rails serves on threads", ":thread"]
      class Application < Rails::Application
        config.eager_load = false
        config.logger = Logger.new(nil)
        config.heddle.fibers = 9
      end
      Application.initialize!
      p ActiveSupport::IsolatedExecutionState.isolation_level
    RUBY
  }.each do |adapter, (library, program, message, result)|
    it "leaves #{library} on its threads, although #{adapter} is loaded" do
      expect(printed("$stderr = $stdout\nrequire #{adapter.inspect}\n#{program}", library:)).to eq(
        "Heddle: #{message}, because Heddle is switched off by HEDDLE_UNSUPPORTED\n#{result}\n"
      )
    end
  end

  # As after a change of Ruby beneath a gem that has builds for other versions.
  it "says so, and leaves Puma on its threads, where the gem has no build for this Ruby" do
    Dir.mktmpdir do |folder|
      FileUtils.cp_r("#{Processes::LIB}/.", folder)
      FileUtils.rm(Dir["#{folder}/heddle/**/heddle.so"])
      output, errors, status = run_command(RbConfig.ruby, "-I", folder, "-e", <<~RUBY)
        begin
          require "puma"
        rescue LoadError
          exit #{Libraries::MISSING}
        end
        $stderr = $stdout
        require "puma/plugin/heddle"
        puts [Heddle.supported?, Puma::Server.ancestors.first].inspect
        begin
          Heddle.run { nil }
        rescue Heddle::Unsupported => e
          puts e.message
        end
      RUBY
      skip_or_fail_without("puma") if status.exitstatus == Libraries::MISSING
      reason = "was installed without an extension for Ruby #{RUBY_VERSION}"
      expect([output.lines, errors]).to match [
        ["Heddle: Puma serves with its threads, because Heddle #{reason}\n", "[false, Puma::Server]\n",
         start_with("Heddle.run: Heddle #{reason}. It runs in a Linux container: docker run")], ""
      ]
    end
  end

  # A laptop's Ruby, which names its system like this.
  describe "on another system" do
    let(:laptop) { "require 'rbconfig'; RbConfig::CONFIG['target_os'] = 'darwin24'; $stderr = $stdout\n" }

    it "says which, and leaves programs to their threads" do
      output, errors, = run_ruby("#{laptop}require 'heddle/executor'; p Heddle.supported?")

      expect([output, errors]).to eq [
        "Heddle: there is no Heddle::Executor, because Heddle needs Linux, and this is darwin24\nfalse\n", ""
      ]
    end

    it "is installed without compiling anything, and says why" do
      Dir.mktmpdir do |folder|
        extension = File.expand_path("../../ext/heddle/extconf.rb", __dir__)
        output, errors, = run_ruby("#{laptop}load #{extension.dump}", chdir: folder)
        made = %w[all install].map { |target| run_command("make", target, chdir: folder).last.success? }

        expect([output, errors, made, Dir.children(folder)]).to match [
          /\Aheddle compiles no extension: it needs Linux, .* not darwin24\. The gem steps aside/, "", [true, true],
          ["Makefile"]
        ]
      end
    end
  end
end
