# frozen_string_literal: true

# Tasks that use the same autoloaded constant see all of it

File.write("late.rb", "module Late\n  sleep(0.02)\n  VALUE = 1\nend\n")
Object.autoload(:Late, File.expand_path("late.rb"))
say Array.new(5) { task { attempt { Late::VALUE } } }.map(&:value)
