# frozen_string_literal: true

# Tasks make, list and remove directories

names = Array.new(10) do |number|
  task do
    Dir.mkdir("d#{number}") && File.write("d#{number}/f", number.to_s) && "d#{number}"
  end
end.map(&:value)
say Dir.children(".").sort == names.sort, Dir.glob("d*/f").size, Dir.each_child("d1").to_a
Dir.chdir("d2") { say File.read("f"), File.basename(Dir.pwd) }
say Dir.mktmpdir { |path| File.directory?(path) }, attempt { Dir.rmdir("d1") }[/ENOTEMPTY/]
say FileUtils.rm_rf(names).size, Dir.empty?(".")
