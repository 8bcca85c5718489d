# frozen_string_literal: true

require_relative "clock"

# For programs that compute until a stall has been reported.
module Stalling
  # Defines `stall_until`, which computes until its block is true. Its time slice ends each second: if the machine has
  # kept the fiber from running before it called this method, the time slice has been reported for another place. And
  # `watch_stderr`, which calls its block with each line that is written to $stderr, after it has been written.
  PROGRAM = <<~RUBY.freeze
    require #{Clock::PATH.dump}
    def stall_until
      until yield
        finish = Clock.now + 1
        Integer.sqrt(2) until Clock.now > finish || yield
        sleep(0)
      end
    end
    def watch_stderr(&watch)
      log = Object.new
      log.define_singleton_method(:write) { |line| STDERR.write(line).tap { watch.call(line) } }
      $stderr = log
    end
  RUBY
end
