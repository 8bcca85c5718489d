# frozen_string_literal: true

require "pty"

Ecosystem.library "PTY", requires: "pty", version: -> { RUBY_VERSION } do
  def connect
    reader, writer, pid = PTY.spawn("sh", "-c", "stty -echo; echo ready; while read s; do sleep $s; echo waited; done")
    nil until reader.gets.start_with?("ready")
    [reader, writer, pid]
  end

  def wait(terminal, seconds)
    terminal[1].puts(seconds)
    terminal[0].gets or raise EOFError
  end

  def usable?(terminal)
    terminal[1].puts("0")
    terminal[0].gets == "waited\r\n"
  end

  def die(terminal) = Process.kill(:KILL, -terminal[2])

  def works(terminal) = Array.new(3) { wait(terminal, 0.01) }
end
