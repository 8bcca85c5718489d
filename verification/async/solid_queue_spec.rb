# frozen_string_literal: true

# Fiber workers of a source tree of Solid Queue, which SOLID_QUEUE_SRC names, on PostgreSQL.
RSpec.describe "Solid Queue's fiber workers on Heddle" do
  before(:context) { @server = DatabaseServer.postgres }

  after(:context) { @server&.stop }

  let(:environment) do
    tree = ENV.fetch("SOLID_QUEUE_SRC") { skip "SOLID_QUEUE_SRC names no source tree of Solid Queue" }
    { "DATABASE_URL" => "postgresql:///postgres?pool=20", "PGHOST" => @server.folder, "PGUSER" => "postgres",
      "SOLID_QUEUE_SRC" => tree,
      "RUBYLIB" => [Processes::LIB, File.join(tree, "lib"), ENV.fetch("RUBYLIB", nil)].compact.join(":"),
      "RUBYOPT" => "-rheddle/async", "HEDDLE_ASYNC" => "preempt", "PGGSSENCMODE" => "disable" }
  end

  let(:preamble) { <<~'RUBY' }
    require "rails"
    require "active_record/railtie"
    require "active_job/railtie"
    require "solid_queue"

    class Application < Rails::Application
      config.load_defaults 7.2
      config.root = Dir.mktmpdir
      config.eager_load = false
      config.logger = Logger.new(nil)
      config.active_support.isolation_level = :fiber
      config.active_job.queue_adapter = :solid_queue
      config.solid_queue.on_thread_error = ->(error) { warn error.full_message }
      initialize!
    end
    ActiveRecord::Schema.verbose = false
    load "#{ENV.fetch("SOLID_QUEUE_SRC")}/lib/generators/solid_queue/install/templates/db/queue_schema.rb"
    ActiveRecord::Schema.define { create_table(:executions, force: true) { |table| table.integer :number } }

    class Execution < ActiveRecord::Base; end

    # Even numbers wait, odd ones compute.
    class Work < ActiveJob::Base
      def perform(number)
        number.even? ? sleep(0.02) : 200_000.times { number + 1 }
        Execution.create!(number:)
      end
    end

    def serve(fibers: 20)
      supervisor = fork do
        SolidQueue::Supervisor.start(skip_recurring: true, workers: [{ queues: "*", fibers:, polling_interval: 0.05 }])
      end
      yield
    ensure
      Process.kill(:TERM, supervisor)
      Process.wait(supervisor)
    end

    def wait_for(count) = (sleep(0.01) until Execution.count >= count)
  RUBY

  it "performs each of 400 jobs once, also if TERM stops the worker while jobs wait and compute" do
    expect(printed(<<~RUBY)).to eq "true\n[0, 0, true]\n[400, 400, 400, 0, 0]\n"
      ActiveJob.perform_all_later(Array.new(400) { |number| Work.new(number) })
      serve { wait_for(100) }
      p Execution.count.between?(100, 399)
      finished = SolidQueue::Job.finished.count
      p [SolidQueue::ClaimedExecution.count, finished - Execution.count, SolidQueue::ReadyExecution.count == 400 - finished]
      serve { wait_for(400) }
      p [Execution.count, Execution.distinct.count(:number), SolidQueue::Job.finished.count,
         SolidQueue::FailedExecution.count, SolidQueue::ReadyExecution.count]
    RUBY
  end

  it "performs a job that another one, which computes, needs" do
    expect(printed(<<~RUBY)).to eq "[1, 2]\n"
      class Computing < ActiveJob::Base
        def perform
          nil until $released
          Execution.create!(number: 2)
        end
      end
      class Releasing < ActiveJob::Base
        def perform
          Execution.create!(number: 1)
          $released = true
        end
      end
      Computing.perform_later
      serve do
        sleep(0.01) until SolidQueue::ClaimedExecution.exists?
        Releasing.perform_later
        wait_for(2)
      end
      p Execution.order(:id).pluck(:number)
    RUBY
  end
end
