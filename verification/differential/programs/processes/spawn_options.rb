# frozen_string_literal: true

# spawn's redirections, environment and directory

Dir.mkdir("inside")
commands = "pwd; echo $NAME; echo err >&2; cat"
pid = spawn({ "NAME" => "value" }, commands, chdir: "inside", out: "out", err: %i[child out], in: IO::NULL)
Process.wait(pid)
say File.read("out").sub(/.*inside/, "inside")
reader, writer = IO.pipe
Process.wait(spawn("echo piped", out: writer))
writer.close
say reader.read
