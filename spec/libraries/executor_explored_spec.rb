# frozen_string_literal: true

# Heddle's own code is preempted like any other: each pair of an executor's operations, by two fibers, in the schedules
# with one preemption in it.
RSpec.describe "Heddle::Executor" do
  include Libraries

  let(:library) { "concurrent" }

  # How many schedules; the errors that were there once were found by then, or long before.
  pairs = { %i[post kill] => 150, %i[post shutdown] => 150, %i[replace post] => 700, %i[replace kill] => 150,
            %i[kill wait] => 150 }

  pairs.each do |(first, second), runs|
    it "terminates after a kill, whenever #{first} and #{second} have been preempted" do
      expect(printed(<<~RUBY)).to eq "terminated\n"
        require "heddle/executor"
        require "heddle/testing"
        operations = {
          post: ->(executor) { executor.post { sleep } },
          replace: ->(executor) { executor.post { executor.replace { sleep } } },
          kill: ->(executor) { executor.kill },
          shutdown: ->(executor) { executor.shutdown },
          wait: ->(executor) { executor.wait_for_termination(1) }
        }
        paths = $LOADED_FEATURES.grep(%r{/heddle/executor(\\.rb|/)})
        Heddle::Testing.explore(strategy: :exhaustive, preemptions: 1, runs: #{runs}, clock: :virtual, paths:) do
          executor = Heddle::Executor.new(fibers: 1)
          executor.post { sleep }
          fibers = %i[#{first} #{second}].map do |name|
            Heddle.spin do
              operations.fetch(name).call(executor)
            rescue Concurrent::RejectedExecutionError
              # It was killed first.
            end
          end
          Heddle.await_all(*fibers)
          executor.kill
          executor.wait_for_termination
          raise "left: \#{executor.inspect}" unless executor.length.zero? && executor.queue_length.zero?
        end
        puts "terminated"
      RUBY
    end
  end
end
