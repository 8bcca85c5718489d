# frozen_string_literal: true

# A file is closed by another task between two writes

file = Tempfile.new
writer = task { attempt { loop { file.write("x") && sleep(0.001) } } }
settle
file.close
say writer.value, File.read(file.path).delete("x")
