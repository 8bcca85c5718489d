# frozen_string_literal: true

# Process.daemon goes on without the other tasks, and its standard input is empty although a task was reading it

reader, writer = IO.pipe
child = fork do
  scheduled do
    input, = IO.pipe
    $stdin.reopen(input)
    task { $stdin.read }
    settle
    Process.daemon
    writer.write([$stdin.read, $stdout.stat.chardev?, Dir.pwd].inspect)
    exit!(0)
  end
end
writer.close
say Process.wait2(child).last.exitstatus, reader.read
