# frozen_string_literal: true

require_relative "../support/work"

# Measures how many units of work take Work::SECONDS. The quickest of several tries counts, as other processes disturbed
# the slower ones.
class Calibrate
  TRIES = 5
  TRY = 100

  def measure(_contestant)
    unit = Array.new(TRIES) { seconds_of_a_try / TRY }.min
    { units: (Work::SECONDS / unit).round, unit_ms: unit * 1000 }
  end

  private

  def seconds_of_a_try
    before = Clock.cpu
    TRY.times { Work.unit }
    Clock.cpu - before
  end
end
