# frozen_string_literal: true

# External enumerators that wait work in every task

tasks = Array.new(5) do |number|
  task do
    enumerator = Enumerator.new { |yielder| 3.times { |item| sleep(0.001) && (yielder << ((number * 10) + item)) } }
    [enumerator.next, enumerator.peek, enumerator.next, enumerator.next, attempt { enumerator.next }]
  end
end
say tasks.map(&:value)
