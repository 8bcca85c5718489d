# frozen_string_literal: true

require "json"

# The lines of docs/structured-concurrency.md for a library's context, with the library itself, at every place that
# starts work. OpenTelemetry's are checked by `rake opentelemetry`, Sentry's by the specs of Puma's requests.
RSpec.describe "Heddle.carry_context" do
  include Libraries

  document = File.read(File.expand_path("../../docs/structured-concurrency.md", __dir__), encoding: Encoding::UTF_8)
  table = document[/^## What work takes along$.*?(?:^## |\z)/m].scan(/^\| `?(.+?)`?#{" \\| (.+?)" * 4} \|$/)
  column = table.to_h { |place, *cells| [place.delete("`"), cells[2]] }
  support = File.expand_path("../support/work_places.rb", __dir__)

  # By the comment in the document: the library, how a program sets it up, reads and writes its context.
  {
    "tagged logging" => ["active_support", <<~RUBY],
      require "logger"
      require "active_support/isolated_execution_state"
      require "active_support/tagged_logging"
      ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
      logger = ActiveSupport::TaggedLogging.new(Logger.new(nil))
      read = -> { logger.formatter.current_tags.last }
      write = lambda do |tag|
        logger.clear_tags!
        logger.push_tags(tag)
      end
    RUBY
    # Without its native parts, `datadog` needs no more than a module `Libdatadog`.
    "Datadog" => ["datadog", <<~RUBY]
      Datadog.configure do |config|
        config.tracing.enabled = false
        config.telemetry.enabled = config.remote.enabled = config.diagnostics.startup_logs.enabled = false
      end
      ids = { alice: 1, bob: 2, work: 3 }
      read = -> { ids.key(Datadog::Tracing.active_trace&.id) }
      write = lambda do |name|
        Datadog::Tracing.continue_trace!(Datadog::Tracing::TraceDigest.new(trace_id: ids.fetch(name), span_id: 9))
      end
    RUBY
  }.each do |title, (library, setting)|
    lines = document[/^Heddle\.carry_context do +# #{title}.*?^end$/m]

    it "carries #{title} by the lines of the guide, to all places as its table says" do
      observed = JSON.parse(printed(<<~RUBY, library:))
        require "json"
        require "heddle/executor"
        require "heddle/offload"
        require "heddle/jobs/limited_queues"
        require #{support.dump}

        #{setting}
        kind = WorkPlaces::Kind.new(read:, write:)
        without = WorkPlaces.cell("Heddle.spin { }", kind)
        #{lines}
        cells = WorkPlaces::PLACES.to_h { |place, _| [place, WorkPlaces.cell(place, kind)] }
        puts JSON.generate([without, cells])
      RUBY

      expect(observed).to eq ["nothing", column.slice(*WorkPlaces::PLACES.keys)]
    end
  end
end
