# frozen_string_literal: true

require_relative "../support/garbage_collection_programs"

RSpec.describe "Garbage collection" do
  GarbageCollectionPrograms::ALL.each do |name, (result, program)|
    # It would wait for the fiber that waits here.
    next if name.end_with?("closes its scheduler")

    it "with compaction does no harm to #{name}", gc: :compact do
      actual = Heddle.run do
        gate = Queue.new
        Fiber.schedule { gate.pop }
        GC.start
        program.call.tap { gate.push(:open) }
      end
      expect(actual).to eq result
    end
  end
end
