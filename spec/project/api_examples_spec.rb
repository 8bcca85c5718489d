# frozen_string_literal: true

RSpec.describe "The example program in examples/api" do
  include ExamplePrograms

  {
    "library" => <<~TEXT,
      without a scheduler: Oslo 3 C, Lima 19 C
      in a fiber:          Lima 19 C, Pune 31 C
      the clock continues
      its error:           key not found: "Atlantis"
    TEXT
    "time_limits" => <<~TEXT,
      cancel_after: 0.1 s elapsed
      no answer
      line 0
      line 1
      line 2
      line 3
      line 4
      silent for 1.0 s
      saved
    TEXT
    "waiting" => <<~TEXT,
      page 1
      page 2, page 3
      page 5
      the slow one gives nil
      page 7
      the other one is stopped
      no such page
      page 8, page 9, page 10
      warp and weft
    TEXT
    "pipeline" => <<~TEXT,
      first:   3 6 5
      longest: 7
      result: done
    TEXT
    "pools" => <<~TEXT
      process: 9
      map: 0 1 4 9 16
      limit: too late
      its thread was killed; the next one gives 25
    TEXT
  }.each do |name, expected|
    it "#{name} prints what its comments say" do
      # On a machine that stands still for a moment, no line comes too late.
      run_example("api/#{name}", *("1" if name == "time_limits")) do |_, output, process|
        expect(output.read).to eq(expected)
        expect(process.value).to be_success
      end
    end
  end

  it "has an example of its own here" do
    names = Dir[File.join(ExamplePrograms::ROOT, "examples/api/*.rb")].map { |path| File.basename(path, ".rb") }

    expect(names).to contain_exactly("library", "time_limits", "waiting", "pipeline", "pools")
  end
end
