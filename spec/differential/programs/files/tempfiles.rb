# frozen_string_literal: true

# Tempfiles that tasks make are theirs

paths = Array.new(20) { |number| task { Tempfile.create("t") { |file| file.write(number) && file.rewind && [file.read, File.exist?(file.path)] } } }
say paths.map(&:value)
