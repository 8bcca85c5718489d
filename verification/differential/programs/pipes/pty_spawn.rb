# frozen_string_literal: true

# A program on a pseudoterminal is read until its end

require "pty"
text = +""
PTY.spawn("echo one; sleep 0.02; echo two") do |output, _input, pid|
  begin
    loop { text << output.readpartial(100) }
  rescue Errno::EIO
    text << "end"
  end
  Process.wait(pid)
end
say text.delete("\r"), $CHILD_STATUS.success?
