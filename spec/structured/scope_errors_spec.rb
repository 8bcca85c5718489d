# frozen_string_literal: true

RSpec.describe "The errors of the children of a Heddle.run within Heddle.run" do
  it "leave nothing in the fiber when they have been raised", :regression do
    expect(printed(<<~RUBY)).to eq "[2000, true]\n"
      require "heddle"
      def arrays = GC.start || ObjectSpace.count_objects[:T_ARRAY]

      raised = before = after = 0
      Heddle.run do
        Heddle.run do
          before = arrays
          2_000.times do
            Heddle.spin { raise KeyError }
            sleep
          rescue KeyError
            raised += 1
          end
          after = arrays
        end
      end
      p [raised, after - before < 1_000]
    RUBY
  end
end
