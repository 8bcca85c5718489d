# frozen_string_literal: true

# Finalizers run while tasks wait, and may close descriptors

closed = Queue.new
reader = task { IO.pipe { |input, output| task { settle && output.close } && input.read } }
make = lambda do
  input, output = IO.pipe
  ObjectSpace.define_finalizer(Object.new, proc { [input, output].each(&:close) && (closed << true) })
end
20.times { make.call }
10.times { GC.start && Array.new(1000) { +"garbage" } }
say reader.value, closed.empty?
