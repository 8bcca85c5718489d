# frozen_string_literal: true

# Lines that tasks append to one file are whole

tasks = Array.new(5) do |number|
  task do
    File.open("file", "a") do |file|
      50.times do |line|
        file.write("#{number} #{line}\n")
      end
    end
  end
end
tasks.each(&:join)
say File.readlines("file", chomp: true).map { |line| line.split.map(&:to_i) }.sort == [*0...5].product([*0...50])
