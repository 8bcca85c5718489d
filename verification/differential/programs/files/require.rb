# frozen_string_literal: true

# Tasks that require the same file which waits load it once

File.write("slow.rb", "$loads = $loads.to_i + 1\nsleep(0.02)\nLOADED = true\n")
tasks = Array.new(5) { task { require File.expand_path("slow.rb") } }
say tasks.map(&:value).tally.sort_by(&:to_s), $loads, LOADED
