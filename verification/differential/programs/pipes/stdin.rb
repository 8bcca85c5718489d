# frozen_string_literal: true

# $stdin is read by line, by part and to its end

say $stdin.gets, $stdin.readpartial(6), $stdin.read, $stdin.gets, attempt { $stdin.readline }
