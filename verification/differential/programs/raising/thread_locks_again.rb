# frozen_string_literal: true

# A thread that another one raises into, or kills, while it locks a Mutex again at the end of a sleep, has the Mutex

{ "raise" => ->(thread) { thread.raise(ArgumentError, "poke") }, "kill" => :kill.to_proc }.each do |name, interrupt|
  mutex = Mutex.new
  condition = ConditionVariable.new
  waits = Queue.new
  is_owned = nil
  thread = elsewhere do
    mutex.synchronize do
      waits << true
      condition.wait(mutex)
    ensure
      is_owned = mutex.owned?
    end
  end
  waits.pop
  settle
  mutex.lock
  condition.signal
  settle
  interrupt.call(thread)
  settle
  mutex.unlock
  say "#{name}: #{attempt { thread.join && thread.status }.inspect}, #{is_owned}, #{mutex.locked?}"
end
