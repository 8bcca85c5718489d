# frozen_string_literal: true

# A Ractor opens, reads, writes and closes files and pipes

Warning[:experimental] = false
ractor = Ractor.new do
  file = File.open("/dev/null") { 1 }
  piped = IO.pipe { |reader, writer| writer.write("x") && reader.read(1) }
  [file, piped, Fiber.new { Fiber.yield(:yielded) }.resume]
end
say ractor.respond_to?(:value) ? ractor.value : ractor.take
