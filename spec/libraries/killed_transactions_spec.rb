# frozen_string_literal: true

# An `ensure` clause of a fiber that is killed sees no exception, as at the end of its block, where a transaction is
# committed.
RSpec.describe "The transaction of a fiber that is killed" do
  include Libraries

  libraries = {
    "ActiveRecord" => <<~RUBY,
      gem "activerecord"
      require "active_record"
      ActiveSupport::IsolatedExecutionState.isolation_level = :fiber
      ActiveRecord::Base.establish_connection(adapter: "sqlite3", database:)
      ActiveRecord::Schema.verbose = false
      ActiveRecord::Schema.define { create_table(:things) { |table| table.string :name } }
      class Thing < ActiveRecord::Base; end
      def transaction(&) = Thing.transaction(&)
      def write(name) = Thing.create!(name:)
      def written = Thing.order(:id).pluck(:name)
    RUBY
    "Sequel" => <<~RUBY
      gem "sequel"
      require "sequel"
      Sequel.extension(:fiber_concurrency)
      DB = Sequel.sqlite(database)
      DB.create_table(:things) { String :name }
      def transaction(&) = DB.transaction(&)
      def write(name) = DB[:things].insert(name:)
      def written = DB[:things].select_map(:name)
    RUBY
  }
  ends = {
    "by another fiber as it waits" => ["", "sleep", "fiber.kill"],
    "by another fiber as it computes" => ["", "loop { nil }", "fiber.kill"],
    "by itself" => ["", "Fiber.current.kill", ""],
    "after its grace" => ["grace: 0.01", "begin; sleep; rescue Exception; sleep; end", "Heddle.stop(fiber)"],
    "with its thread" => ["", "sleep", "Thread.current.kill"]
  }

  libraries.each do |library, setup|
    ends.each do |how, (options, waiting, ending)|
      it "is rolled back by #{library}: #{how}" do
        output, errors, status = run_ruby(<<~RUBY)
          begin
            require "heddle"
            require "sqlite3"
            require "tmpdir"
            folder = Dir.mktmpdir
            at_exit { FileUtils.remove_entry(folder) }
            database = File.join(folder, "things.sqlite3")
            #{setup}
          rescue LoadError
            exit #{Libraries::MISSING}
          end
          begun = Thread::Queue.new
          Thread.new do
            Heddle.run(preempt: :all, #{options}) do
              written
              fiber = Heddle.spin(background: true) do
                transaction do
                  write("half")
                  # Libraries load files when they first write, and what is interrupted there is loaded again.
                  begun << true
                  #{waiting}
                end
              end
              begun.pop
              #{ending}
              Heddle.await(fiber) if fiber.alive?
            end
          end.join
          Heddle.run { write("whole") && p(written) }
        RUBY
        skip_or_fail_without("#{library.downcase}-with-sqlite3") if status.exitstatus == Libraries::MISSING

        expect([output, errors.lines.grep_v(/is killed|is abandoned/)]).to eq [%(["whole"]\n), []]
      end
    end
  end
end
