# frozen_string_literal: true

# A task waits for a lock on a file that another task holds

holder = task do
  File.open("lock", "w") do |file|
    file.flock(File::LOCK_EX)
    sleep(0.05)
    say :released
  end
end
settle(0.01)
File.open("lock", "w") do |file|
  say file.flock(File::LOCK_EX | File::LOCK_NB)
  say file.flock(File::LOCK_EX), :locked
end
holder.join
