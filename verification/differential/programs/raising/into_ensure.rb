# frozen_string_literal: true

# A task that is raised into while its `ensure` waits leaves with the new error

victim = task do
  attempt do
    raise "first"
  ensure
    sleep
  end
end
settle
victim.raise(ArgumentError, "second")
say victim.value
