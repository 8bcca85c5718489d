# frozen_string_literal: true

# A task that is interrupted while it locks a Mutex again, at the end of a sleep, has the Mutex, and is interrupted then

require "monitor"

on_mutex = lambda do |*limit|
  mutex = Mutex.new
  condition = ConditionVariable.new
  [mutex, condition, -> { condition.wait(mutex, *limit) }]
end
on_monitor = lambda do
  monitor = Monitor.new
  condition = monitor.new_cond
  [monitor, condition, -> { condition.wait }]
end
sleeps = {
  "ConditionVariable#wait" => on_mutex, "ConditionVariable#wait(20)" => -> { on_mutex.call(20) },
  "MonitorMixin::ConditionVariable#wait" => on_monitor
}
interrupts = {
  "raise" => ->(victim) { victim.raise(ArgumentError, "poke") }, "kill" => :kill.to_proc,
  # The limit below has passed then.
  "Timeout" => ->(_) { sleep 0.15 }
}
sleeps.to_a.product(interrupts.to_a) do |(name, make), (interrupt, call)|
  lock, condition, wait = make.call
  is_owned = nil
  inside = proc do
    lock.synchronize do
      wait.call
    ensure
      is_owned = lock.respond_to?(:owned?) ? lock.owned? : lock.mon_owned?
    end
  end
  victim = task { attempt { interrupt == "Timeout" ? Timeout.timeout(0.1, &inside) : inside.call } }
  settle
  lock.respond_to?(:lock) ? lock.lock : lock.enter
  condition.signal
  settle
  call.call(victim)
  settle
  lock.respond_to?(:unlock) ? lock.unlock : lock.exit
  victim.join
  # A fiber that is killed ends at its next wait, of which there is none here.
  say "#{name}, #{interrupt}: #{is_owned}, #{victim.value unless interrupt == "kill"}"
  say lock.respond_to?(:locked?) ? lock.locked? : lock.mon_locked?
end
