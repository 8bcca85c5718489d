# frozen_string_literal: true

# Lines that tasks append to one file are whole

tasks = Array.new(5) { |number| task { File.open("file", "a") { |file| 50.times { |line| file.write("#{number} #{line}\n") } } } }
tasks.each(&:join)
say File.readlines("file", chomp: true).map { |line| line.split.map(&:to_i) }.sort == [*0...5].product([*0...50])
