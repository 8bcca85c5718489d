# frozen_string_literal: true

# Two fibers schedule each other forever, so the run queue is never empty. A third fiber that reads still gets to run.
#
#   ruby -Ilib examples/polyphony/two_busy_fibers.rb
#
# Type a line to see it; Ctrl-C ends the program.

require "heddle/core_ext"

$stdout.sync = true

@f1 = spin do
  loop do
    @f2.schedule
    puts "f1"
  end
end
@f2 = spin do
  loop do
    @f1.schedule
    puts "f2"
  end
end
@reader = spin { puts "read: #{$stdin.gets}" }

Fiber.await(@f1, @f2)
