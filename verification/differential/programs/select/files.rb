# frozen_string_literal: true

# A regular file is always ready

File.open("file", "w+") { |file| say IO.select([file], [file], nil, 1).map(&:size) }
