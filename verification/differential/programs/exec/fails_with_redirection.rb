# frozen_string_literal: true

# exec that fails leaves a number redirected, and a task that reads it reads the new file

reader, writer = IO.pipe
writer.write("text")
say reader.readpartial(100)
say attempt { exec("/nonexistent/program", reader => File::NULL) }
say task { attempt { reader.readpartial(100) } }.value, attempt { writer.write("text") }
