# frozen_string_literal: true

# Characters that chunks cut in two come out whole

reader, writer = IO.pipe
reader.set_encoding("UTF-8:UTF-16LE")
text = "äöü€𝄞" * 100
writing = task do
  text.bytes.each_slice(7) do |slice|
    writer.write(slice.pack("C*")) && sleep(0.0002)
  end.then { writer.close }
end
characters = reader.each_char.to_a
say characters.size, characters.join.encode("UTF-8") == text, characters.first.encoding
writing.join
