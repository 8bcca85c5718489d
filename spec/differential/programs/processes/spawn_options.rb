# frozen_string_literal: true

# spawn's redirections, environment and directory

Dir.mkdir("inside")
pid = spawn({ "NAME" => "value" }, "pwd; echo $NAME; echo err >&2; cat", chdir: "inside", out: "out", err: %i[child out], in: IO::NULL)
Process.wait(pid)
say File.read("out").sub(/.*inside/, "inside")
reader, writer = IO.pipe
Process.wait(spawn("echo piped", out: writer))
writer.close
say reader.read
