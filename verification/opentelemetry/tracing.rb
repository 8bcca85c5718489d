# frozen_string_literal: true

require "opentelemetry/sdk"
require "heddle"

# OpenTelemetry as a program sets it up, with an exporter that keeps the spans.
module Tracing
  EXPORTER = OpenTelemetry::SDK::Trace::Export::InMemorySpanExporter.new
  ROOT = OpenTelemetry::Trace::INVALID_SPAN_ID
  OpenTelemetry::SDK.configure do |config|
    config.add_span_processor(OpenTelemetry::SDK::Trace::Export::SimpleSpanProcessor.new(EXPORTER))
  end
  TRACER = OpenTelemetry.tracer_provider.tracer("heddle")

  module_function

  def span(name, &) = TRACER.in_span(name, &)

  # @return [String, nil] the name of the current span
  def current
    span = OpenTelemetry::Trace.current_span
    span.name if span.respond_to?(:name)
  end

  # As docs/structured-concurrency.md has it.
  def carry
    Heddle.carry_context do
      context = OpenTelemetry::Context.current
      ->(&work) { OpenTelemetry::Context.with_current(context, &work) }
    end
  end

  # Computes for longer than a time slice of the schedulers here.
  def compute = 30_000.times.sum { |number| number ^ 3 }

  # @return [Array<Array(String, String, String)>] each ended span's name, its parent's, or nil, and its trace
  def take
    spans = EXPORTER.finished_spans
    EXPORTER.reset
    names = spans.to_h { |span| [span.span_id, span.name] }
    spans.map { |span| [span.name, names[span.parent_span_id], span.hex_trace_id] }
  end
end
