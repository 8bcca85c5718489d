# frozen_string_literal: true

# A task that is killed while its `ensure` waits goes on with the `ensure` of the outer block

order = []
victim = task do
  begin
    sleep
  ensure
    order << :inner
    sleep(0.02)
    order << :inner_done
  end
ensure
  order << :outer
end
settle
victim.kill
victim.join
say order
