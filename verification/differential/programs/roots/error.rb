# frozen_string_literal: true

# An error of the block comes out, after the tasks

order = []
gate = Queue.new
say attempt {
  scheduled do
    task { gate.pop && (order << :task) }
    order << :block
    gate << true
    raise ArgumentError, "of the block"
  end
}, order.first
