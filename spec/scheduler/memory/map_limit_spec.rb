# frozen_string_literal: true

RSpec.describe "A process that comes near its limit of memory maps", skip: !File.exist?("/proc/self/maps") do
  # Lets so many fibers be alive at once, twice, in a Ruby whose limit seems to be so many maps. Returns what it writes
  # to stderr.
  def warnings(fibers:, limit:, start: "Fiber.schedule")
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      Heddle.const_get(:FiberBody).assume_map_limit(#{limit})
      2.times do
        Heddle.run do
          gate = Queue.new
          #{fibers}.times { #{start} { gate.pop } }
          sleep(0)
          gate.close
        end
      end
      puts "done"
    RUBY
    expect(output).to eq "done\n"
    errors
  end

  ["Fiber.schedule", "Heddle.spin", "YieldingFiber.schedule"].each do |start|
    it "writes one warning about fibers of #{start}, with their number and the limit" do
      expect(warnings(fibers: 3100, limit: 5000, start:)).to match(
        %r{\Aheddle: 2048 fibers are alive, whose stacks take 4096 of the 5000 memory maps .*docs/deployment\.md\n\z}
      )
    end
  end

  it "writes nothing while the fibers' stacks take less than four fifths of the maps" do
    expect(warnings(fibers: 2100, limit: 6000)).to eq ""
  end

  it "writes nothing about fibers that were not alive at the same time" do
    expect(warnings(fibers: 3100, limit: 5000, start: "sleep(0); Fiber.schedule { nil }; proc")).to eq ""
  end
end
