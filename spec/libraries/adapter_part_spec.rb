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
    it "of #{adapter} is off, and the program goes on, with a #{gem} that lacks a method" do
      program = "require 'sidekiq/component' if #{library.inspect} == 'sidekiq'\n$VERBOSE = false\n#{change}\n" \
                "$stderr = $stdout\nrequire #{adapter.inspect}\nputs(#{expectation})"

      # grpc's extension warns when it is loaded.
      output = printed(program, library:, environment: { "RUBYOPT" => "-W0" })
      expect(output).to match(/\AHeddle: #{Regexp.escape(message)}[^\n]*is missing\ntrue\n\z/)
    end
  end

  it "is on with an unknown version that has what it relies on" do
    expect(printed(<<~RUBY, library: "puma")).to eq "true\n"
      Puma::Const.send(:remove_const, :PUMA_VERSION)
      Puma::Const.const_set(:PUMA_VERSION, "99.0.0")
      $stderr = $stdout
      require "heddle/puma"
      p Puma::Server.include?(Heddle::PumaSupport::Server)
    RUBY
  end
end
