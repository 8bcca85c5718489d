# frozen_string_literal: true

require "tmpdir"

# Records traces in a folder of the example's own.
module Tracing
  def self.included(group)
    group.around { |example| Dir.mktmpdir { |folder| (@folder = folder) && example.run } }
  end

  def path(name = "trace.json") = File.join(@folder, name)

  def recording? = Heddle.const_get(:Native).tracing?

  # Traces the block within Heddle.run, and returns the trace.
  def traced(events: 500_000, **, &block)
    Heddle.run(**) { Heddle.trace(path, events:, &block) }
    TraceFile.read(path)
  end
end
