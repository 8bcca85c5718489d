# frozen_string_literal: true

require "rbconfig"

# Runs the programs in examples/.
module ExamplePrograms
  ROOT = File.expand_path("../..", __dir__)

  # Starts the example as its header says. Yields its stdin, its stdout with its stderr, and its process.
  def run_example(name, *arguments)
    command = [RbConfig.ruby, "-Ilib", "examples/#{name}.rb", *arguments]
    with_command(*command, chdir: ROOT, err: %i[child out]) do |input, output, _errors, process|
      yield input, output, process
    end
  end
end
