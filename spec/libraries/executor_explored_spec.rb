# frozen_string_literal: true

# Heddle's own code is preempted like any other: each pair of an executor's operations, by two fibers, in the schedules
# with one preemption in it.
RSpec.describe "Heddle::Executor" do
  include Libraries

  let(:library) { "concurrent" }

  # The operations, how many tasks run before them, and how many schedules; the errors that were there once were found
  # by then, or long before.
  pairs = { [:post, :kill, 0] => 150, [:post, :kill, 1] => 150,
            [:post, :shutdown, 1] => 150, [:replace, :post, 1] => 700,
            [:replace, :kill, 1] => 150, [:kill, :wait, 1] => 150 }

  pairs.each do |(first, second, tasks), runs|
    it "terminates after a kill, whenever #{first} and #{second} have been preempted, beside #{tasks} tasks" do
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
          #{tasks}.times { executor.post { sleep } }
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

  # What an exploration of a program says that begins with this expression.
  def explored(future)
    printed(<<~RUBY)
      require "heddle/executor"
      require "heddle/testing"
      # The pool of threads has begun.
      Concurrent::Promises.future { nil }.value!
      begin
        Heddle::Testing.explore(runs: 3) do
          executor = Heddle::Executor.new
          print #{future}
        end
      rescue Heddle::Testing::Failure => e
        print e.message
      end
    RUBY
  end

  %w[Promises.future Future.execute].each do |method|
    it "is what the task of Concurrent::#{method} needs in an explored schedule" do
      expect(explored("Concurrent::#{method} { nil }"))
        .to start_with("Heddle::Testing.explore: the program has a thread of concurrent-ruby run a task at -e:")
    end
  end

  it "runs the task of Concurrent::Promises.future_on in an explored schedule" do
    expect(explored("Concurrent::Promises.future_on(executor) { 1 }.value!")).to eq("111")
  end
end
