# frozen_string_literal: true

# What Heddle does once for a library, when the first unit of work needs it: no other unit may go on before it is done.
# Two units, in the schedules with one preemption in Heddle's code or in the library's.
RSpec.describe "The first two units of work of a process, preempted anywhere" do
  include Libraries

  let(:library) { "active_support" }

  it "keep what ActiveSupport keeps for them" do
    expect(printed(<<~RUBY)).to eq "kept\n"
      require "active_support/isolated_execution_state"
      require "heddle/testing"
      State = ActiveSupport::IsolatedExecutionState
      isolation = Heddle.const_get(:FiberIsolation)
      unit = Heddle.const_get(:UnitOfWork)
      paths = $LOADED_FEATURES.grep(%r{/(fiber_isolation|isolated_execution_state)\\.rb})
      Heddle::Testing.explore(strategy: :exhaustive, preemptions: 1, runs: 300, clock: :virtual, paths:) do
        isolation.instance_variable_set(:@ensured, nil)
        State.isolation_level = :thread
        fibers = %w[alice bob].map do |user|
          Heddle.spin do
            unit.run_job(:shared, log: ->(_message) {}) do
              State[:user] = user
              Heddle.snooze
              raise "\#{user}: \#{State[:user].inspect}" unless State[:user] == user
            end
          end
        end
        Heddle.await_all(*fibers)
      end
      puts "kept"
    RUBY
  end
end
