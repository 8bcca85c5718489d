# frozen_string_literal: true

RSpec.describe "A part of an adapter" do
  include Libraries

  before do
    stub_const("Gem9::Queue", Class.new do
      define_method(:initialize) { @jobs = [] }
      define_method(:push) { |job, at: nil| [:pushed, job, at] }
      define_method(:take) { |count = 1, &block| block&.call(count) }
      private :take
    end)
  end

  def part(**) = Heddle.const_get(:AdapterPart).new("gem9", "9.1", right_with: "9.0", without: "jobs wait", **)

  def override(&) = { "Gem9::Queue" => Module.new(&) }

  # Each with what is said of it; nil if nothing is missing.
  {
    "Gem9::Queue" => nil,
    "Gem9::Queue.new" => nil,
    "Gem9::Queue@jobs" => nil,
    "Gem9::Queue#take(_)" => nil,
    "Gem9::Queue#push(_, at:)" => nil,
    "Gem9::Queue#push(_, _ | _)" => nil,
    "Gem9::Stack" => "Gem9::Stack is missing",
    "Gem9::Queue#pop" => "Gem9::Queue#pop is missing",
    "Gem9::Queue#select" => "Gem9::Queue#select is missing", # although there is Kernel#select
    "Gem9::Queue.push" => "Gem9::Queue.push is missing",
    "Gem9::Queue@tasks" => "Gem9::Queue has no variable @tasks",
    "Gem9::Queue#push()" => "Gem9::Queue#push has the parameters (job, at: …) and is called with ()",
    "Gem9::Queue#push(_, in:)" => "Gem9::Queue#push has the parameters (job, at: …) and is called with (_, in:)"
  }.each do |reference, message|
    it "#{message ? "misses" : "finds"} #{reference}" do
      expect(part(uses: [reference]).missing).to eq [message].compact
    end
  end

  it "is on if its overrides take what the library's methods take, whatever else is prepended to those" do
    Gem9::Queue.prepend(Module.new { define_method(:push) { |*list, **options| super(*list, **options) } })
    on = part(overrides: override { def push(job, at: nil) = super && :overridden })

    expect([on.install, Gem9::Queue.new.push(1)]).to eq [true, :overridden]
  end

  it "stays off, and says in one line what is lost, if an override does not take a parameter, or overrides nothing" do
    off = part(overrides: override { %i[push pop].each { |name| define_method(name) { |job| job } } })

    expect { expect([off.install, off.install]).to eq [false, false] }.to output(
      "Heddle: jobs wait, because gem9 9.1 differs from 9.0, with which this was last right: Gem9::Queue#push has " \
      "the parameters (job, at: …), which Heddle's does not take; Gem9::Queue#pop is missing\n"
    ).to_stderr
    expect(Gem9::Queue.new.push(1, at: 2)).to eq [:pushed, 1, 2]
  end

  it "refuses if requests would be mixed without it" do
    expect { part(uses: ["Gem9::Stack"]).demand }.to raise_error(Heddle::IncompatibleLibraryError, /Gem9::Stack is mis/)
  end

  # Adapters with a library from which a method was removed, or to whose version a number was added.
  {
    "puma" => ["puma", "Puma::Server.remove_method(:reactor_wakeup)", "heddle/puma",
               "Puma::Server.ancestors.first == Puma::Server", "Puma serves with its threads, because puma"],
    "sidekiq" => ["sidekiq", "Sidekiq::Component.remove_method(:watchdog)", "heddle/sidekiq",
                  "!Sidekiq.default_configuration.default_capsule.fibers!.fibers?",
                  "Sidekiq's capsules keep their threads, because sidekiq"],
    "rails" => ["rails",
                "require 'active_support/concurrency/share_lock'\n" \
                "ActiveSupport::Concurrency::ShareLock.remove_method(:start_sharing)", "heddle/rails",
                "Heddle::RailsSupport.const_defined?(:Railtie)",
                "a reload in development may unload classes under a running request, because rails"],
    "rails, for Live," => [
      "rails", "ActiveSupport::IsolatedExecutionState.singleton_class.remove_method(:share_with)", "heddle/rails",
      "require('action_controller') && ActionController::Base && ActionController::Live.ancestors.first.inspect == " \
      "'ActionController::Live'",
      "actions of ActionController::Live run on threads, without the state of their request, because rails"
    ],
    "rails, for Action Cable," => [
      "rails", "require 'action_cable'\nActionCable::Connection::MessageBuffer.remove_method(:process!)",
      "heddle/rails",
      "ActionCable.server && ActionCable::Connection::MessageBuffer.ancestors.first.inspect == " \
      "'ActionCable::Connection::MessageBuffer'",
      "Action Cable may keep a message for ever that arrives while a connection is opened, because rails"
    ],
    "rails, for a request's fibers," => [
      "rails", "require 'active_support/current_attributes'\n" \
               "ActiveSupport::CurrentAttributes.remove_method(:attributes=)", "heddle/rails",
      "Heddle.run { Heddle.spin { true }.await }",
      "fibers that a request starts do not see its CurrentAttributes, because rails"
    ],
    "activejob" => [
      "active_job", <<~RUBY, "active_job/queue_adapters/heddle_adapter",
        DONE = Queue.new
        class Work < ActiveJob::Base
          self.logger = nil
          def perform = DONE << true
        end
        ActiveJob::Callbacks::ClassMethods.remove_method(:around_perform)
      RUBY
      "Work.queue_adapter = ActiveJob::QueueAdapters::HeddleAdapter.new(fibers: 3)\nWork.perform_later\nDONE.pop",
      "Active Job's jobs run on threads, without `limits:`, because activejob"
    ],
    "activerecord" => [
      "active_record", "ActiveRecord::ConnectionAdapters::ConnectionPool.remove_method(:size)", "heddle",
      "Heddle.run { true }",
      "a fiber that waits for a connection of ActiveRecord's pool is shown without the pool's name, because active"
    ],
    "connection_pool" => [
      "connection_pool", "ConnectionPool::TimedStack.remove_method(:max)", "heddle",
      "Heddle.run { ConnectionPool.new(size: 1) { true }.with(&:itself) }",
      "a fiber that waits for a connection of a ConnectionPool is shown without the pool's name, because conn"
    ],
    "grpc" => ["grpc", "GRPC::Core::Call.remove_method(:run_batch)", "heddle/offload/grpc",
               "GRPC::Core::Call.ancestors.first == GRPC::Core::Call",
               "a call of a gRPC client blocks all fibers of its thread, because grpc"],
    "mysql2" => ["mysql2", "Mysql2::Statement.remove_method(:execute)", "heddle/offload/mysql2",
                 "[Mysql2::Statement, Mysql2::Client].map { |type| type.ancestors.first == type } == [true, false]",
                 "executing a prepared statement of mysql2 blocks all fibers of the thread, because mysql2"],
    "sqlite3" => ["sqlite3", "SQLite3::Database.remove_method(:busy_handler_timeout=)", "heddle/offload/sqlite3",
                  "SQLite3::Database.new(':memory:').busy_timeout(1).is_a?(SQLite3::Database)",
                  "a wait for a lock of SQLite by busy_timeout= blocks all fibers of its thread, because sqlite3"],
    "typhoeus" => ["typhoeus", "Ethon::Curl.singleton_class.remove_method(:select)", "heddle/offload/typhoeus",
                   "Ethon::Curl.singleton_class.ancestors.first == Ethon::Curl.singleton_class",
                   "a request of typhoeus blocks all fibers of its thread, because ethon"],
    "Ruby" => ["heddle", "(Ractor.instance_methods(false) & %i[take value]).each { |name| Ractor.remove_method(name) }",
               "heddle/offload/ractor", "Ractor.ancestors.first == Ractor",
               "a fiber that waits for a Ractor blocks all fibers of its thread, because Ruby"]
  }.each do |gem, (library, change, adapter, expectation, message)|
    it "of #{adapter} is off, and the program goes on, where #{gem} lacks a method" do
      program = "require 'sidekiq/component' if #{library.inspect} == 'sidekiq'\n$VERBOSE = false\n#{change}\n" \
                "$stderr = $stdout\nrequire #{adapter.inspect}\nputs begin\n#{expectation}\nend"

      # grpc's extension warns when it is loaded.
      output = printed(program, library:, environment: { "RUBYOPT" => "-W0" })
      expect(output).to match(/\AHeddle: #{Regexp.escape(message)}[^\n]*is missing\ntrue\n\z/)
    end
  end

  # Without these, requests would be mixed.
  %i[isolation_level isolation_level= context].each do |name|
    it "refuses to boot Rails without ActiveSupport::IsolatedExecutionState.#{name}" do
      message = /\Athe fibers of a thread would share [^\n]*\.#{name} is missing\n\z/
      expect(printed(<<~RUBY, library: "rails")).to match(message)
        require "active_support/isolated_execution_state"
        ActiveSupport::IsolatedExecutionState.singleton_class.undef_method(:#{name})
        begin
          require "heddle/rails"
        rescue Heddle::IncompatibleLibraryError => e
          puts e.message
        end
      RUBY
    end
  end

  it "logs tasks' errors, although concurrent-ruby lacks its private method for that" do
    expect(printed(<<~RUBY, library: "concurrent")).to eq "[0, KeyError]\n[3, NotImplementedError]\n"
      Concurrent::Concern::Logging.remove_method(:log)
      $stderr = $stdout
      require "heddle/executor"
      Concurrent.global_logger = ->(level, error, *) { p [level, error.class] }
      executor = Heddle::Executor.new(on: :thread)
      [KeyError, NotImplementedError].each { |error| executor.post { raise error } }
      executor.shutdown
      executor.wait_for_termination
    RUBY
  end

  # The constant with the version, an adapter, and what is true if all of its parts are on.
  {
    "puma" => ["Puma::Const::PUMA_VERSION", "heddle/puma", "Puma::Server.include?(Heddle::PumaSupport::Server)"],
    "rails" => ["Rails::VERSION::STRING", "heddle/rails",
                "ActiveSupport::Concurrency::ShareLock.const_defined?(:Thread, false)"],
    "active_job" => ["ActiveJob::VERSION::STRING", "active_job/queue_adapters/heddle_adapter",
                     "ActiveJob::QueueAdapters::HeddleAdapter.superclass == ActiveJob::QueueAdapters::AbstractAdapter"],
    "sidekiq" => ["Sidekiq::VERSION", "heddle/sidekiq",
                  "Sidekiq.default_configuration.default_capsule.fibers!.fibers?"],
    "concurrent" => ["Concurrent::VERSION", "heddle/executor", "Heddle::Executor.new.running?"],
    "connection_pool" => ["ConnectionPool::VERSION", "heddle",
                          "Heddle.run { ConnectionPool::TimedStack.ancestors.first != ConnectionPool::TimedStack }"]
  }.each do |library, (version, adapter, expectation)|
    it "is on with an unknown version of #{library} that has what it relies on" do
      owner, name = version.match(/(.*)::(.*)/).captures
      expect(printed(<<~RUBY, library:)).to eq "true\n"
        #{owner}.send(:remove_const, :#{name})
        #{owner}.const_set(:#{name}, "99.0.0")
        $stderr = $stdout
        require "#{adapter}"
        p(#{expectation})
      RUBY
    end
  end
end
