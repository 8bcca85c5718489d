# frozen_string_literal: true

# The gem cannot be installed everywhere. Where it is missing, the programs run with a registry that has the methods
# which the gem documents.
RSpec.describe "heddle/metrics/prometheus" do
  registry = <<~RUBY
    $LOADED_FEATURES << "prometheus/client.rb"
    module Prometheus
      module Client
        class Registry
          def initialize = @metrics = {}
          def register(metric) = @metrics[metric.name] = metric
          def get(name) = @metrics[name.to_sym]
          def metrics = @metrics.values
        end

        def self.registry = @registry ||= Registry.new
      end
    end
  RUBY
  let(:preamble) { <<~RUBY }
    begin
      require "prometheus/client"
    rescue LoadError
      eval(#{registry.dump})
    end
    require "heddle/metrics/prometheus"
    def register(scheduler, **) = Heddle::Metrics::Prometheus.register(scheduler, **)
    def values(name) = Prometheus::Client.registry.get(name).values
  RUBY

  it "registers metrics whose values are the scheduler's when they are asked for" do
    expect(printed(<<~RUBY)).to eq "[2, 1, true]\n"
      Heddle.run do
        register(Fiber.scheduler)
        sleeping = Fiber.schedule { sleep }
        p [values(:heddle_fibers_spawned_total)[{}], values(:heddle_timers_pending)[{}] + 1,
           values(:heddle_kernel_park_seconds_total)[{}].is_a?(Float)]
        sleeping.kill
      end
    RUBY
  end

  it "names the unit of what is in seconds, and of nothing else" do
    expect(printed(<<~RUBY)).to eq "[]\n"
      register(Heddle::Scheduler.new)
      metrics = Prometheus::Client.registry.metrics
      wrong = metrics.reject do |metric|
        metric.name.match?(/_seconds(_total)?\\z/) == metric.docstring.start_with?("Seconds ")
      end
      p wrong.map(&:name)
    RUBY
  end

  it "gives the metrics of several schedulers the labels that they are registered with" do
    expect(printed(<<~RUBY)).to eq %w[web jobs].inspect << "\n"
      %w[web jobs].each { |pool| register(Heddle::Scheduler.new, labels: { pool: }) }
      p values(:heddle_fibers_waiting).keys.map { |labels| labels[:pool] }
    RUBY
  end

  it "has cumulative buckets of the histograms that stats: :detailed makes" do
    expect(printed(<<~RUBY)).to eq "[true, true, true]\n"
      Heddle.run(stats: :detailed) do
        20.times { sleep(0) }
        register(Fiber.scheduler)
        histogram = values(:heddle_run_queue_slice_seconds)[{}]
        counts = histogram.except("sum").values
        p [counts == counts.sort, histogram["+Inf"] >= 20, histogram["sum"].positive?]
      end
    RUBY
  end

  it "has no values of the histograms otherwise" do
    expect(printed("register(Heddle::Scheduler.new); p values(:heddle_run_queue_slice_seconds)")).to eq "{}\n"
  end

  it "gives each metric a name, a type and a description" do
    expect(printed(<<~RUBY)).to eq "true\n"
      register(Heddle::Scheduler.new)
      p(Prometheus::Client.registry.metrics.all? do |metric|
        metric.name.match?(/\\Aheddle_[a-z_]+\\z/) && %i[counter gauge histogram].include?(metric.type) &&
          !metric.docstring.empty?
      end)
    RUBY
  end

  it "refuses a second scheduler with the same labels" do
    expect(printed(<<~RUBY)).to eq "a scheduler is registered with labels {} already: give each its own\n"
      register(Heddle::Scheduler.new)
      begin
        register(Heddle::Scheduler.new)
      rescue ArgumentError => e
        puts e.message
      end
    RUBY
  end

  it "refuses a label that the metrics by name have" do
    expect(printed(<<~RUBY)).to end_with "the label name is Heddle's own: give yours another name\n"
      begin
        register(Heddle::Scheduler.new, labels: { name: "jobs" })
      rescue ArgumentError => e
        puts e.message
      end
    RUBY
  end

  it "refuses labels that are no Hash" do
    expect(printed(<<~RUBY)).to end_with "labels: must be a Hash, not nil\n"
      begin
        register(Heddle::Scheduler.new, labels: nil)
      rescue TypeError => e
        puts e.message
      end
    RUBY
  end

  it "refuses what is no scheduler" do
    expect(printed(<<~RUBY)).to eq "wrong argument type NilClass (expected Heddle::Scheduler)\n"
      begin
        register(Fiber.scheduler)
      rescue TypeError => e
        puts e.message
      end
    RUBY
  end

  it "is written by the gem's text format" do
    expect(printed(<<~RUBY)).to match(/^heddle_fibers_spawned_total 1$|not installed/)
      begin
        require "prometheus/client/formats/text"
      rescue LoadError
        puts "not installed"
        exit
      end
      Heddle.run do
        register(Fiber.scheduler)
        puts Prometheus::Client::Formats::Text.marshal(Prometheus::Client.registry)
      end
    RUBY
  end

  it "has no values of a scheduler after its unsubscribe, and those of the others" do
    expect(printed(<<~RUBY)).to eq %w[jobs].inspect << "\n"
      web, = %w[web jobs].map { |pool| register(Heddle::Scheduler.new, labels: { pool: }) }
      web.unsubscribe
      p values(:heddle_fibers_waiting).keys.map { |labels| labels[:pool] }
    RUBY
  end

  it "lets another scheduler have the labels after unsubscribe, which does nothing the second time" do
    expect(printed(<<~RUBY)).to eq "[{}]\n"
      first = register(Heddle::Scheduler.new)
      first.unsubscribe
      register(Heddle::Scheduler.new)
      first.unsubscribe
      p values(:heddle_fibers_waiting).keys
    RUBY
  end

  it "registers none of the metrics if one of them cannot be registered" do
    expect(printed(<<~RUBY)).to eq "[true, {}]\n"
      registry = Prometheus::Client.registry
      names = []
      registry.define_singleton_method(:register) do |metric|
        raise "a name is taken" if names.size == 3

        names << metric.name
        super(metric)
      end
      begin
        register(Heddle::Scheduler.new)
      rescue RuntimeError
        p [names.size == 3, values(names.first)]
      end
    RUBY
  end

  it "has what the fibers of each name have done, with stats: :detailed" do
    expect(printed(<<~RUBY)).to eq "[1, true, true]\n"
      Heddle.run(stats: :detailed) do
        register(Fiber.scheduler)
        Heddle.annotate("GET /orders/7") { sleep 0.001 } # at least
        labels = { name: "GET /orders/:id" }
        ages = values(:heddle_name_age_seconds)[labels]
        waits = values(:heddle_name_waited_seconds_total)
        found = [ages["+Inf"], ages["sum"] > 0.001 * 0.9, waits[labels.merge(kind: "sleep")].positive?]
        p found
      end
    RUBY
  end

  it "has no values by name unless that is counted" do
    expect(printed(<<~RUBY)).to eq "{}\n"
      Heddle.run do
        register(Fiber.scheduler)
        Heddle.annotate("part") { sleep 0 }
        p values(:heddle_name_age_seconds)
      end
    RUBY
  end

  it "has no values by name while they are counted for the dashboard alone" do
    expect(printed(<<~RUBY)).to eq "{}\n"
      Heddle.run do
        register(Fiber.scheduler)
        Heddle.const_get(:Accounting).run_for(60)
        Heddle.annotate("part") { sleep 0 }
        p values(:heddle_name_age_seconds)
      end
    RUBY
  end

  it "has the first hundred names, and all others as one" do
    expect(printed(<<~RUBY)).to eq "[101, 50]\n"
      Heddle.run(stats: :detailed) do
        register(Fiber.scheduler)
        ("aa".."zz").first(150).each { |name| Heddle.annotate(name) { nil } }
        ages = values(:heddle_name_age_seconds)
        p [ages.size, ages[{ name: "other" }]["+Inf"]]
      end
    RUBY
  end
end
