# frozen_string_literal: true

# Lines by limit, separator, paragraph and chomp

File.write("file", "one\ntwo words\n\nnext paragraph\nlast")
File.open("file") do |file|
  say file.gets(2), file.gets, file.gets(" "), file.gets(nil, 3), file.gets(""), file.lineno
  say file.gets(chomp: true), file.gets, file.gets
end
say File.foreach("file", chomp: true).to_a, File.foreach("file", "").to_a.size, IO.readlines("file", 4).size
File.open("file") do |file|
  say file.each_char.first(2), file.each_byte.first(2), file.ungetbyte(65), file.getc, file.ungetc("é"), file.getc
end
