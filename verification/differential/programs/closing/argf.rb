# frozen_string_literal: true

# ARGF.close closes the file that a task reads by ARGF

File.mkfifo("fifo")
ARGV.replace(["fifo"])
writer = File.open("fifo", "r+")
writer.syswrite("a line\n")
say ARGF.gets
number = ARGF.file.fileno
waiter = task { ARGF.file.readpartial(100) }
settle
ARGF.close
pairs = retake(number)
say error_of { waiter.value }, intact?(pairs)
