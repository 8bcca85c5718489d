# frozen_string_literal: true

# File#flock waits for the task that has the lock, and ends by unlock, close, a time limit, a kill and an error

File.write("file", "0")

def locked(mode = File::LOCK_EX) = File.open("file", "r+") { |file| yield file if file.flock(mode).zero? }

# Each task waits while it has the lock.
adders = Array.new(5) do
  task do
    4.times do
      locked do |file|
        count = file.read.to_i
        sleep 0.001
        file.rewind
        file.write(count + 1)
      end
    end
  end
end
adders.each(&:join)
say File.read("file")

holder = File.open("file", "r+")
say holder.flock(File::LOCK_EX), attempt { locked(File::LOCK_EX | File::LOCK_NB) { :taken } }
say attempt { Timeout.timeout(0.02) { locked { :taken } } }
killed = task { locked { :taken } }
settle
killed.kill
say killed.value
raised = task { attempt { locked { :taken } } }
settle
raised.raise("no lock")
say raised.value

File.open("file") do |waiting|
  waiter = task { attempt { waiting.flock(File::LOCK_SH) } }
  settle
  waiting.close
  say waiter.value
end

# A task whose wait has timed out does not get the lock later.
kept = File.open("file")
say attempt { Timeout.timeout(0.02) { kept.flock(File::LOCK_EX) } }
holder.flock(File::LOCK_UN)
say attempt { locked(File::LOCK_EX | File::LOCK_NB) { :free } }, kept.close
holder.flock(File::LOCK_EX)

shared = Array.new(3) { task { locked(File::LOCK_SH) { :shared } } }
settle
say holder.flock(File::LOCK_UN), shared.map(&:value), holder.close
say attempt { File.open("file") { |file| file.flock("x") } }, attempt { holder.flock(File::LOCK_EX) }
