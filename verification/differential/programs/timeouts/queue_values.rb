# frozen_string_literal: true

# Queue#pop, SizedQueue#push and Thread#join take and refuse the limits that they do on a thread

ended = Thread.new { :ended }
[0, 0.001, -1, 1r / 1000, nil, "1"].each do |limit|
  full = SizedQueue.new(1).push(1)
  say [limit.nil? ? :waits : attempt { Queue.new.pop(timeout: limit) },
       limit.nil? ? :waits : attempt { full.push(2, timeout: limit) },
       attempt { ended.join(limit).class }].inspect
end
say attempt { Queue.new.pop(true, timeout: 1) }, attempt { Queue.new.pop(true) }
