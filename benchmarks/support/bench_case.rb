# frozen_string_literal: true

require_relative "contestants"

# One row of a catalogue: which workload is measured with which parameters, whose figures are compared, in which unit,
# and what Heddle's marks are. `figure` names what is compared, `extras` are told beside it.
#
# Ratios are told to `reference`, a contestant. `relative_to` names the case that growth is told against; a `traced`
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
