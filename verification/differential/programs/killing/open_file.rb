# frozen_string_literal: true

# The end of a process writes what its open files have buffered

child = fork do
  $kept = File.open("kept", "w")
  $kept.write("text")
end
Process.wait(child)
say File.read("kept")
