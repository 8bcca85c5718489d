# frozen_string_literal: true

RSpec.describe "An adapter's check of its library's version" do
  include Libraries

  versions = Heddle.const_get(:TriedVersions)

  before { stub_const("ENV", ENV.to_h.except("HEDDLE_UNTRIED_VERSIONS")) }

  it "accepts each version of the range, and the prereleases of its releases" do
    expect { %w[8.1.0 8.1.99 8.1.7.pre1].each { |version| versions.check("sidekiq", version) } }.not_to raise_error
  end

  %w[8.0.9 8.2.0 9.0.0].each do |version|
    it "refuses Sidekiq #{version}, which is outside of the range" do
      expect { versions.check("sidekiq", version) }.to raise_error(
        Heddle::UntriedVersionError,
        "Heddle's adapter for sidekiq uses private methods of it, and was tried with >= 8.1, < 8.2 only, not with " \
        "#{version}: update heddle, or use such a version of sidekiq. To load the adapter all the same, set " \
        "HEDDLE_UNTRIED_VERSIONS=sidekiq"
      )
    end
  end

  it "lets the version pass that HEDDLE_UNTRIED_VERSIONS names" do
    ENV["HEDDLE_UNTRIED_VERSIONS"] = "puma, sidekiq"

    expect { versions.check("sidekiq", "9.0") }.not_to raise_error
  end

  it "lets no other gem's version pass" do
    ENV["HEDDLE_UNTRIED_VERSIONS"] = "sidekiq-pro"

    expect { versions.check("sidekiq", "9.0") }.to raise_error(Heddle::UntriedVersionError)
  end

  {
    "concurrent-ruby" => ["concurrent/version", "Concurrent", "heddle/executor"],
    "puma" => ["puma", "Puma::Const", "heddle/puma"],
    "rails" => ["rails/version", "Rails::VERSION", "heddle/rails"],
    "activejob" => ["active_job/version", "ActiveJob::VERSION", "active_job/queue_adapters/heddle_adapter"],
    "sidekiq" => ["sidekiq", "Sidekiq", "heddle/sidekiq"]
  }.each do |gem, (library, owner, adapter)|
    it "keeps #{adapter} from loading with an untried #{gem}, before it has changed the library" do
      names = { "Puma::Const" => "PUMA_VERSION", "ActiveJob::VERSION" => "STRING", "Rails::VERSION" => "STRING" }
      name = names.fetch(owner, "VERSION")
      expect(printed(<<~RUBY, library:)).to eq "Heddle::UntriedVersionError: [] #{gem}\n"
        #{owner}.send(:remove_const, :#{name})
        #{owner}.const_set(:#{name}, "99.0.0")
        begin
          require "#{adapter}"
        rescue Heddle::Error => e
          loaded = %i[Executor Jobs Puma Rails].select { |name| Heddle.const_defined?(name, false) }
          puts "\#{e.class}: \#{loaded - #{adapter == "heddle/executor" ? [] : [:Executor]}} \#{e.message[/adapter for (\\S+)/, 1]}"
        end
      RUBY
    end
  end
end
