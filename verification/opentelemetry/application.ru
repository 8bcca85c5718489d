# frozen_string_literal: true

require "rack/events"
require_relative "tracing"

Tracing.carry

# Begins and ends a request's span where OpenTelemetry's instrumentation of Rack does.
class RequestSpans
  include Rack::Events::Abstract

  def on_start(request, _response)
    sent = OpenTelemetry.propagation.extract(request.env, getter: OpenTelemetry::Common::Propagation.rack_env_getter)
    span = Tracing::TRACER.start_span(request.path, with_parent: sent)
    context = OpenTelemetry::Trace.context_with_span(span, parent_context: sent)
    request.env["spans"] = [span, OpenTelemetry::Context.attach(context)]
  end

  def on_finish(request, _response)
    span, token = request.env["spans"]
    span.finish
    OpenTelemetry::Context.detach(token) || abort("the body of #{request.path} was closed in another fiber")
  end
end

# Sends its parts in spans.
Body = Struct.new(:path) do
  def each
    2.times { Tracing.span("body of #{path}") { sleep(0.001) && yield("part\n") } }
  end
end

use Rack::Events, [RequestSpans.new]
run(lambda do |env|
  path = env["PATH_INFO"]
  if path == "/spans"
    # A request's span ends after its response.
    sleep 0.001 until Tracing::EXPORTER.finished_spans.size >= Integer(env["QUERY_STRING"])
    next [200, {}, [Marshal.dump(Tracing.take)]]
  end

  2.times { Tracing.span("query of #{path}") { sleep(0.001) && Tracing.compute } }
  Heddle.await(Heddle.spin { Tracing.span("task of #{path}") { sleep 0.001 } })
  [200, { "x-current" => Tracing.current }, Body.new(path)]
end)
