# frozen_string_literal: true

require_relative "../contestants"

# One row of a catalogue: a workload with its parameters, the contestants, the unit, and Heddle's marks. `figure` names
# the figure that is compared; `extras` are reported beside it.
#
# Ratios are relative to `reference`, a contestant. `relative_to` names the case that growth is relative to. A `traced`
# case counts system calls.
BenchCase = Data.define(:name, :title, :workload, :parameters, :contestants, :figure, :unit, :more_is_better,
                        :marks, :extras, :relative_to, :traced, :reference) do
  def initialize(**given)
    super(workload: given.fetch(:name), parameters: {}, figure: :rate, unit: "operations/s", more_is_better: true,
          marks: {}, extras: [], relative_to: nil, traced: false, reference: Contestants::REFERENCE, **given)
  end

  def selected?(names) = names.empty? || names.any? { |each| name == each || name.start_with?("#{each}_") }

  def marks_of(contestant)
    marks.fetch(contestant.name) { contestant.heddle? ? marks.fetch(:heddle, []) : [] }
  end
end
