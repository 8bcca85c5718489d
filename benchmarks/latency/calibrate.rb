# frozen_string_literal: true

require_relative "work"

# How many units of work take as long as all hogs are to compute. The quickest of some tries counts: the others were
# disturbed by somebody.
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
