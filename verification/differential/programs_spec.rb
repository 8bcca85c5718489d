# frozen_string_literal: true

require "json"

# Runs small programs on plain threads and as fibers of Heddle. The outcomes must be the same.
module Differential
  DIRECTORY = __dir__
  PROGRAMS = Dir["#{DIRECTORY}/programs/*/*.rb"]
  REFERENCE = "plain"
  AT_ONCE = 6

  Outcome = Struct.new(:status, :output, :errors) do
    def to_s = "#{output}#{status}"
  end

  module_function

  # Lets each contestant run its programs, several at a time.
  def run(wanted)
    waiting = Thread::Queue.new
    wanted.each { |contestant, programs| programs.each_slice(20) { |slice| waiting << [contestant, slice] } }
    waiting.close
    outcomes = Hash.new { |hash, contestant| hash[contestant] = {} }
    workers = Array.new(AT_ONCE) { Thread.new { work(waiting, outcomes) } }
    workers.each(&:join)
    outcomes
  end

  def work(waiting, outcomes)
    while (contestant, programs = waiting.pop)
      outcomes[contestant].merge!(outcomes_of(contestant, programs))
    end
  end

  def outcomes_of(contestant, programs)
    command = [RbConfig.ruby, "-I", Processes::LIB, "#{DIRECTORY}/runner.rb", contestant, *programs]
    lines = IO.popen(Processes::Fresh.environment, command, unsetenv_others: true) { |io| io.readlines(chomp: true) }
    lines.to_h do |line|
      path, *outcome = JSON.parse(line).values_at("path", "status", "output", "errors")
      [path, Outcome.new(*outcome)]
    end
  end

  # The contestants of this run of the specs.
  def contestants = Selection.contestants([ENV.fetch("HEDDLE_BACKEND", "auto")])

  # Returns the subject of a program, which is its first comment.
  def subject(path)
    lines = File.readlines(path, chomp: true, encoding: "UTF-8")
    lines.grep(/\A# (?!frozen)/).first.delete_prefix("# ")
  end
end

RSpec.describe Differential do
  before(:context) do
    chosen = RSpec.world.filtered_examples.values.flatten.filter_map { |example| example.metadata[:program] }
    wanted = chosen.group_by(&:first).transform_values { |pairs| pairs.map(&:last) }
    wanted[described_class::REFERENCE] = chosen.map(&:last).uniq
    @outcomes = described_class.run(wanted)
  end

  described_class::PROGRAMS.group_by { |path| File.basename(File.dirname(path)) }.sort.each do |folder, programs|
    describe folder do
      programs.sort.each do |path|
        described_class.contestants.each do |contestant|
          name = "#{described_class.subject(path)} (#{contestant}, #{File.basename(path)})"

          it name, program: [contestant, path] do
            actual = @outcomes.dig(contestant, path)
            expected = @outcomes.dig(described_class::REFERENCE, path)

            # Since Ruby 4.0 some libraries are gems, which may be missing.
            missing = expected.errors[/: (.*) \(LoadError\)/, 1]
            skip missing[/(?<=': ).*\z/] || missing if missing

            expect(expected.status).not_to start_with("not over"), "#{path} hangs on plain threads"
            expect(actual.to_s).to eq(expected.to_s), -> { <<~REPORT }
              #{path} on plain threads:
              #{expected}
              #{expected.errors}

              as #{contestant}:
              #{actual}

              stderr:
              #{actual.errors}
            REPORT
          end
        end
      end
    end
  end
end
