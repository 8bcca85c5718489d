# frozen_string_literal: true

# Transactions of a PStore that tasks share count right

require "pstore"
store = PStore.new("store", true)
Array.new(5) { task { 5.times { store.transaction { store[:count] = store.fetch(:count, 0) + 1 } } } }.each(&:join)
say store.transaction(true) { store[:count] }
