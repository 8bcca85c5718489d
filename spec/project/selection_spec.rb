# frozen_string_literal: true

# What bin/test's quick run takes must not shrink unnoticed.
RSpec.describe Selection do
  # In which of the combinations each example runs.
  def taken(examples, backends, **environment)
    in_child do
      examples.map do |metadata|
        backends.each_index.select do |number|
          ENV.update("HEDDLE_COMBINATIONS" => backends.join(" "), "HEDDLE_COMBINATION" => number.to_s,
                     "HEDDLE_SLICE" => "1/1", **environment.transform_keys(&:to_s))
          described_class.takes?(metadata)
        end
      end
    end
  end

  def example(folder, description = "does what it says", id = "1:7", **facts)
    { file_path: "./spec/#{folder}/a_spec.rb", full_description: description, scoped_id: id, **facts }
  end

  %w[hooks io scheduler preemption].each do |folder|
    it "takes an example of #{folder}/ once per backend" do
      combinations = %w[io_uring poll io_uring]
      numbers = taken([example(folder)], combinations).first
      expect(combinations.values_at(*numbers)).to contain_exactly("io_uring", "poll")
    end
  end

  it "takes an example of another folder once" do
    expect(taken([example("structured")], %w[io_uring poll]).first.size).to eq 1
  end

  it "deals the examples of other folders out to all combinations" do
    examples = Array.new(40) { |index| example("structured", "example #{index}") }
    expect(taken(examples, %w[io_uring poll io_uring]).flatten.uniq).to contain_exactly(0, 1, 2)
  end

  %w[libraries slow].each do |folder|
    it "takes the first example of a file of #{folder}/, with the first combination" do
      examples = ["1:1", "1:1:1", "1:2", "1:1:2"].map { |id| example(folder, "calls", id) }
      expect(taken(examples, %w[io_uring poll])).to eq [[0], [0], [], []]
    end
  end

  it "takes each differential program as one contestant, and every contestant" do
    backends = %w[io_uring poll]
    contestants = described_class.contestants(backends)
    programs = contestants.product(Array.new(30, &:to_s))
    numbers = taken(programs.map { |program| example("x", program:) }, backends)
    taken = programs.zip(numbers).filter_map { |program, found| program if found.any? }
    chosen = taken.group_by(&:last).values.map { |group| group.map(&:first) }
    expect(chosen.map(&:size)).to eq [1] * 30
    expect(chosen.flatten.uniq).to match_array(described_class.contestants(backends))
  end

  it "gives each example to one slice" do
    slices = %w[1/2 2/2].map { |slice| taken([example("structured")], %w[poll], HEDDLE_SLICE: slice) }
    expect(slices).to contain_exactly([[0]], [[]])
  end

  it "takes everything if no combination is chosen" do
    found = in_child do
      ENV.delete("HEDDLE_COMBINATIONS")
      ENV["HEDDLE_SLICE"] = "1/1"
      described_class.takes?(example("libraries"))
    end
    expect(found).to be true
  end
end
