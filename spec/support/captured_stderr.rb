# frozen_string_literal: true

require "stringio"

# Reads what Ruby and Heddle report on $stderr.
module CapturedStderr
  # Returns what is written to $stderr while the block runs.
  def captured_stderr
    before = $stderr
    $stderr = StringIO.new
    yield
    $stderr.string
  ensure
    $stderr = before
  end
end
