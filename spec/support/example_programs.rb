# frozen_string_literal: true

require "open3"
require "rbconfig"

# Runs the programs in examples/.
module ExamplePrograms
  ROOT = File.expand_path("../..", __dir__)

  # Starts the example as its header says. Yields its stdin, its stdout with its stderr, and its process.
  def run_example(name, *arguments)
    command = [RbConfig.ruby, "-Ilib", "examples/#{name}.rb", *arguments]
    environment = Processes::Fresh.environment
    Open3.popen2e(environment, *command, unsetenv_others: true, chdir: ROOT, pgroup: true) do |input, output, process|
      yield input, output, process
    ensure
      Process.kill(:KILL, process.pid) if process.alive?
    end
  end
end
