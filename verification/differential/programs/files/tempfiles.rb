# frozen_string_literal: true

# Tempfiles that tasks make are theirs

paths = Array.new(20) do |number|
  task do
    Tempfile.create("t") do |file|
      file.write(number) && file.rewind && [file.read, File.exist?(file.path)]
    end
  end
end
say paths.map(&:value)
