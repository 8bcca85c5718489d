# frozen_string_literal: true

# What bin/test and bin/test --all take must not shrink unnoticed.
RSpec.describe Selection do
  let(:combinations) { %w[3.3/io_uring 3.3/poll 3.4/poll] }
  let(:quick) { %w[3.3/io_uring 3.4/poll] }

  # In which of the combinations each example runs.
  def taken(examples, combinations, **environment)
    in_child do
      examples.map do |metadata|
        combinations.each_index.select do |number|
          ENV.update("HEDDLE_COMBINATIONS" => combinations.join(" "), "HEDDLE_COMBINATION" => number.to_s,
                     "HEDDLE_SLICE" => "1/1", "HEDDLE_TIMED" => "none", **environment.transform_keys(&:to_s))
          environment[:HEDDLE_QUICK] || ENV.delete("HEDDLE_QUICK")
          described_class.takes?(metadata)
        end
      end
    end
  end

  def example(folder, description = "does what it says", **facts)
    { file_path: "./#{folder}/a_spec.rb", full_description: description, **facts }
  end

  {
    "spec/hooks" => [0, 2], "spec/io" => [0, 2],
    "spec/scheduler" => [0, 2], "spec/preemption" => [0, 2], "spec/structured" => [0, 2], "spec/testing" => [0, 2],
    "verification/differential" => [0, 2], "spec/libraries" => [0, 1], "spec/observability" => [0], "spec/slow" => [0],
    "spec/project" => [], "verification/async" => []
  }.each do |folder, numbers|
    it "takes an example of #{folder}/ with the Rubies and backends on which it depends" do
      expect(taken([example(folder)], combinations)).to eq [numbers]
    end
  end

  it "takes no example that names its own folder, as a disturbed run takes a copy in another folder" do
    root = File.expand_path("..", __dir__)
    files = Dir["{#{described_class::ON.keys.join(",")}}/**/*.rb", base: root].grep_v(%r{\Aproject/})
    expect(files.select { |path| File.read("#{root}/#{path}").match?(%r{["']\.?/?spec/[\w/]+\.rb\b}) }).to eq([])
  end

  it "takes no example that reads what a disturbed run's copy lacks" do
    files, folders = File.read("rakelib/disturbed.rake").scan(/%w\[(.*?)\]/).map { |words,| words.split }
    read = Dir["spec/{#{folders.join(",")}}/**/*.rb"].flat_map do |spec|
      File.read(spec).scan(%r{"((?:\.\./)+[\w./-]+)", __dir__}).map do |path,|
        File.expand_path(path, File.dirname(spec)).delete_prefix("#{Dir.pwd}/")
      end
    end
    expect(read.uniq.reject { |path| files.include?(path.split("/").first) }).to eq []
  end

  it "knows each folder that has examples" do
    files = Dir["{spec,verification}/*/**/*_spec.rb", base: File.expand_path("../..", __dir__)]
    expect(files.map { |path| path.split("/")[1] }).to all(satisfy { |folder| described_class::ON.key?(folder) })
  end

  it "takes an example with each backend where there is one Ruby" do
    expect(taken([example("spec/scheduler")], combinations.first(2))).to eq [[0, 1]]
  end

  it "takes ten examples of a file at most for bin/test, each in one combination" do
    all = RSpec.world.all_examples.map(&:metadata).reject { |metadata| metadata[:program] }
    numbers = taken(all, quick, HEDDLE_QUICK: "1")
    counts = all.zip(numbers).group_by { |metadata, _| metadata[:file_path] }
                .transform_values { |pairs| pairs.map { |_, found| found.size } }
    expect(counts.values.map(&:sum)).to all(be_between(0, 10))
    expect(counts.values.flatten).to all(be_between(0, 1))
  end

  it "takes a differential program as one contestant for bin/test, and every contestant" do
    contestants = described_class.contestants(%w[io_uring poll])
    programs = contestants.product(Array.new(60, &:to_s))
    numbers = taken(programs.map { |program| example("verification/differential", program:) }, quick, HEDDLE_QUICK: "1")
    chosen = programs.zip(numbers).filter_map { |program, found| program if found.any? }
    expect(chosen.map(&:last).tally.values.uniq).to eq [1]
    expect(chosen.map(&:first).uniq).to match_array(contestants)
  end

  it "takes the same for bin/test wherever the checkout is" do
    programs = %w[/root/heddle /home/user/heddle].map do |root|
      paths = Array.new(60) { |index| "#{root}/verification/differential/programs/io/#{index}.rb" }
      paths.map { |path| example("verification/differential", program: ["poll", path]) }
    end
    expect(taken(programs.first, quick, HEDDLE_QUICK: "1")).to eq taken(programs.last, quick, HEDDLE_QUICK: "1")
  end

  { "the address of an object" => Object.new.inspect, "the path of the checkout" => __FILE__ }.each do |what, text|
    it "refuses a description with #{what}" do
      expect { described_class.takes?(example("spec/io", text)) }.to raise_error(ArgumentError, /same way in each run/)
    end
  end

  it "takes an example whose subject is real time in a run of these only" do
    examples = [example("spec/preemption", timed: true), example("spec/preemption")]
    runs = %w[none only].map { |which| taken(examples, %w[3.3/poll], HEDDLE_TIMED: which) }
    expect(runs).to eq [[[], [0]], [[0], []]]
  end

  it "gives each example to one slice" do
    slices = %w[1/2 2/2].map { |slice| taken([example("spec/structured")], %w[3.3/poll], HEDDLE_SLICE: slice) }
    expect(slices).to contain_exactly([[0]], [[]])
  end

  it "takes everything if no combination is chosen" do
    found = in_child do
      %w[HEDDLE_COMBINATIONS HEDDLE_TIMED].each { |name| ENV.delete(name) }
      ENV["HEDDLE_SLICE"] = "1/1"
      described_class.takes?(example("spec/libraries"))
    end
    expect(found).to be true
  end
end
