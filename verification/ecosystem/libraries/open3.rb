# frozen_string_literal: true

require "open3"

Ecosystem.library "Open3", requires: "open3", version: -> { Gem::Specification.find_by_name("open3").version } do
  def wait(_client, seconds)
    output, status = Open3.capture2e("sleep #{seconds}; echo waited; echo $$")
    raise IOError, "the process died" unless status.success?

    output
  end

  def usable?(_client) = Open3.capture2("cat", stdin_data: "seven").first == "seven"

  def works(_client)
    output, errors, status = Open3.capture3("cat; echo error >&2; exit 3", stdin_data: "x" * 200_000)
    pipeline = Open3.pipeline_r("echo b a", "tr ' ' '\\n'", "sort") { |last, _threads| last.read }
    [output.size, errors, status.exitstatus, pipeline, Open3.popen2("cat") { |input, out| input.close || out.read }]
  end
end
