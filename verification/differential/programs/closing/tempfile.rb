# frozen_string_literal: true

# A file is closed by another task between two writes

file = Tempfile.new
written = 0
writer = task { attempt { loop { (written += file.write("x")) && sleep(0.001) } } }
sleep(0.001) until written.positive?
file.close
say writer.value, File.read(file.path).delete("x")
