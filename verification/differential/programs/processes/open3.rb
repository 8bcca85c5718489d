# frozen_string_literal: true

# Open3's captures, pipelines and statuses

require "open3"
say Open3.capture3("cat; echo error >&2; exit 4", stdin_data: "in").then { |out, err, status|
  [out, err, status.exitstatus]
}
say Open3.capture2e("echo one; echo two >&2").first.lines.sort
say Open3.pipeline_r("echo b a", "tr ' ' '\n'", "sort") { |io, _| io.read }
