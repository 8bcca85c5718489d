# frozen_string_literal: true

# Reports events to the parent process, one line for each.
class Events
  def initialize(path)
    # The file stays open, as a test may use up all descriptors.
    @file = File.new(path, "ab")
    @file.sync = true
    @pid = Process.pid
  end

  def <<(event)
    # A child process that a test forks may call this method, too.
    @file.write("#{[Marshal.dump(event)].pack("m0")}\n") if Process.pid == @pid
    self
  end
end
