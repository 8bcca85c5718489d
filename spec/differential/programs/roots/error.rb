# frozen_string_literal: true

# An error of the block comes out, after the tasks

order = []
say attempt {
  scheduled do
    task { sleep(0.03) && (order << :task) }
    order << :block
    raise ArgumentError, "of the block"
  end
}, order.first
