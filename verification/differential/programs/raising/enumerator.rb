# frozen_string_literal: true

# An exception reaches a task that waits within an external enumerator

numbers = Enumerator.new { |yielder| sleep && (yielder << 1) }
victim = task { attempt { numbers.next } }
settle
victim.raise(ArgumentError, "poke")
say victim.join(20) ? victim.value : :waits
