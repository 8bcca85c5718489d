# frozen_string_literal: true

require_relative "../support/garbage_collection_programs"

RSpec.describe "Garbage collection" do
  GarbageCollectionPrograms::ALL.each do |name, (result, _program)|
    # In a Ruby of its own: a collection takes ten times as long where the whole suite is loaded. Only a hang reaches
    # the limit: the longest example takes 15 s alone, and several suites run these at once.
    it "at each allocation does no harm to #{name}", timeout: 610 do
      output, errors, = run_ruby(<<~RUBY, timeout: 600)
        require "heddle"
        require #{GarbageCollectionPrograms::PATH.inspect}
        program = GarbageCollectionPrograms::ALL.fetch(#{name.inspect}).last
        GC.stress = true
        result = Heddle.run(&program)
        GC.stress = false
        p result
      RUBY
      expect([output, errors]).to eq ["#{result.inspect}\n", ""]
    end
  end

  # Each tick comes before the collection ends that the last one has begun.
  it "at each allocation does no harm to the time limits of fibers that compute", timeout: 610 do
    output, errors, = run_ruby(<<~RUBY, timeout: 600)
      require "heddle"
      require "timeout"
      GC.stress = true
      raised = 0
      Heddle.run(preempt: :all) do
        fibers = Array.new(3) do
          Heddle.spin(background: true) do
            5.times do
              Timeout.timeout(0.03) { loop { "a" + "b" } }
            rescue Timeout::Error
              raised += 1
            end
          end
        end
        Heddle.await_all(*fibers)
      end
      GC.stress = false
      p raised
    RUBY
    expect([output, errors]).to eq ["15\n", ""]
  end
end
