# frozen_string_literal: true

# Runs checks of one library as one contestant: child.rb CONTESTANT LIBRARY CHECKS...
# Writes a line of JSON per check to the descriptor that RESULTS names.

require_relative "library"
require_relative "tasks"
require_relative "checks"

contestant, file, title, *names = ARGV
results = IO.for_fd(Integer(ENV.fetch("RESULTS")), "w")
results.close_on_exec = true
results.sync = true

tasks = Ecosystem::Tasks.named(contestant)
require file
library = Ecosystem.libraries.fetch(title)
results.puts(JSON.generate(["version", library.load_version]))
# One for all checks: a check ends the pause that an earlier one has begun.
server = Ecosystem::RunningServer.from_environment
names.each do |name|
  observed = begin
    tasks.run do
      Ecosystem::Checks.new(library.new(server), tasks).__send__(name)
    end
  rescue StandardError => e
    { "error" => e.class.name, "message" => e.message[0, 300], "at" => e.backtrace&.first(4) }
  end
  results.puts(JSON.generate([name, observed]))
end
# Threads and connections that a check has left behind must not keep the process.
exit!
