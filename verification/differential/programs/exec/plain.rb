# frozen_string_literal: true

# exec replaces the program although tasks wait

reader, _writer = IO.pipe
task { reader.read(1) }
settle
exec("echo", "replaced")
