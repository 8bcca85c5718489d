# frozen_string_literal: true

# IO.select waits until a task writes

pipes = Array.new(5) { IO.pipe }
waiter = task { IO.select(pipes.map(&:first)).first.map { |io| pipes.index { |reader, _| reader == io } } }
settle
pipes[3].last.write("x")
say waiter.value
