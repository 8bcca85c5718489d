# frozen_string_literal: true

RSpec.describe "ActiveRecord" do
  include Libraries

  warning = /\AHeddle: the fibers of a thread share one ActiveRecord connection.*isolation_level = :fiber/m

  setup = <<~RUBY
    def connect
      require "tempfile"
      $file = Tempfile.new("heddle")
      ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: $file.path, pool: 5, timeout: 30_000)
      ActiveRecord::Schema.verbose = false
      ActiveRecord::Schema.define { create_table(:things) { |table| table.string(:name) } }
      Object.const_set(:Thing, Class.new(ActiveRecord::Base))
    end
  RUBY

  # One fiber rolls back, while another fiber writes.
  program = <<~RUBY
    Heddle.run do
      Fiber.schedule do
        Thing.transaction do
          Thing.count
          sleep(a_moment)
          raise ActiveRecord::Rollback
        end
      end
      Fiber.schedule { Thing.create!(name: "warp") }
    end
    puts Thing.pluck(:name).inspect
  RUBY

  # Returns what the program prints to stdout and stderr.
  def run_with_active_record(program)
    output, errors, status = run_ruby(<<~RUBY)
      begin
        gem "activerecord"
        require "sqlite3"
      rescue LoadError
        exit #{Libraries::MISSING}
      end
      #{program}
    RUBY
    skip_or_fail_without("activerecord-with-sqlite3") if status.exitstatus == Libraries::MISSING
    [output, errors]
  end

  orders = {
    "loaded before Heddle" => 'require "active_record"; require "heddle"; connect',
    "loaded after Heddle, before the scheduler" => 'require "heddle"; require "active_record"; connect',
    "loaded in a fiber" => 'require "heddle"; Heddle.run { require "active_record"; connect }',
    "loaded in a fiber, where ActiveSupport is there" =>
      'require "active_support"; require "heddle"; Heddle.run { require "active_record"; connect }'
  }

  orders.each do |name, order|
    it "#{name} causes one warning, if fibers share its connection" do
      _, errors = run_with_active_record("#{setup}\n#{order}\n#{program}\nHeddle.run {}")

      expect([errors, errors.scan("Heddle:").size]).to match [warning, 1]
    end

    it "#{name} causes no warning if each fiber has a connection" do
      isolation = "ActiveSupport::IsolatedExecutionState.isolation_level = :fiber"
      wanted = order.sub('require "active_record"', "require \"active_record\"; #{isolation}")

      expect(run_with_active_record("#{setup}\n#{wanted}\n#{program}")).to eq ["[\"warp\"]\n", ""]
    end
  end

  it "loses a fiber's writes without the setting, as the warning says" do
    written = program.sub("Heddle.run", "written = Queue.new\n\\0").sub("sleep(a_moment)", "written.pop")
                     .sub('name: "warp")', '\\0 && written << true')
    output, = run_with_active_record("#{setup}\n#{orders.values.first}\n#{written}")

    expect(output).to eq "[]\n"
  end

  it "causes no warning without a scheduler" do
    _, errors = run_with_active_record("#{setup}\nrequire 'active_record'; require 'heddle'; connect")

    expect(errors).to eq ""
  end

  it "causes no warning with ruby -W0" do
    _, errors = run_with_active_record("$VERBOSE = nil\n#{setup}\n#{orders.values.first}\n#{program}")

    expect(errors).to eq ""
  end

  it "is not loaded by Heddle" do
    loaded, = run_with_active_record(<<~RUBY)
      require "active_record"
      require "heddle"
      Heddle.run {}
      p ActiveRecord.autoload?(:Base)
    RUBY

    expect(loaded).to eq "\"active_record/base\"\n"
  end

  it "may be replaced by an object, as in tests of a program" do
    expect(printed(<<~RUBY, library: "active_support/lazy_load_hooks")).to eq "1\n"
      ActiveRecord = ConnectionPool = Object.new
      Heddle.run { p 1 }
    RUBY
  end

  # An application that sets the isolation level after ActiveRecord is loaded, as Rails does at the end of its start.
  it "is checked when a Rails application has been initialized" do
    rails = <<~RUBY
      require "ostruct"
      module Rails
        class << self; attr_accessor :application; end
      end
      Rails.application = Struct.new(:initialized, :config) { alias_method :initialized?, :initialized }.new(
        false, OpenStruct.new(active_support: OpenStruct.new(isolation_level: :fiber))
      )
      require "heddle"
      require "active_record"
      Heddle.run { connect }
      Rails.application.initialized = true
      ActiveSupport.run_load_hooks(:after_initialize, Rails.application)
    RUBY

    expect(run_with_active_record("#{setup}\n#{rails}")).to eq ["", ""]
  end
end
