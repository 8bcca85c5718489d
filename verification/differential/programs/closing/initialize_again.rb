# frozen_string_literal: true

# IO#initialize, called on an open IO, closes its file under a task that reads, which raises IOError

# Ruby 3.3 and 3.4 close the file in C, and tell a scheduler nothing: see docs/internals/closing.md.
raise LoadError, "Ruby #{RUBY_VERSION} tells a scheduler nothing of this close" if RUBY_VERSION < "4.0"

File.write("file", "of the file")
opens = {
  "initialize" => ->(io) { io.__send__(:initialize, IO.sysopen("file"), "r") },
  "initialize_copy" => ->(io) { io.__send__(:initialize_copy, IO.new(IO.sysopen("file"), "r")) }
}
opens.each do |name, open|
  reader, writer = IO.pipe
  waiter = task { attempt { reader.readpartial(100) } }
  settle
  open.call(reader)
  say name, waiter.value, attempt { writer.write("x") }, reader.read
end
