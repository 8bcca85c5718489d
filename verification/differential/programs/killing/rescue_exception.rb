# frozen_string_literal: true

# A kill passes by `rescue Exception`, even in a loop

count = 0
victim = task do
  loop do
    sleep
  rescue Exception
    count += 1
  end
end
settle
victim.kill
say victim.join(20) ? :ended : :lives, count
