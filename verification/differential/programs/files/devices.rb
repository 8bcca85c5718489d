# frozen_string_literal: true

# /dev/null, /dev/zero and files of /proc are read and written

say File.read("/dev/null"), File.open("/dev/zero") { |zero| zero.read(5).bytes }
say File.write("/dev/null", "x" * 100_000)
say File.read("/proc/self/status")[/^Name:/], File.open("/proc/self/stat", &:read).to_i == Process.pid
say attempt { File.write("/dev/full", "x" * 100_000) }
