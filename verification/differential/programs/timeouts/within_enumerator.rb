# frozen_string_literal: true

# Timeout.timeout around and within an external enumerator

numbers = Enumerator.new { |yielder| 3.times { |number| sleep(0.01) && (yielder << number) } }
say attempt { Timeout.timeout(20) { [numbers.next, numbers.next] } }
slow = Enumerator.new { |yielder| yielder << attempt { Timeout.timeout(0.02) { sleep } } }
say slow.next
