# frozen_string_literal: true

# A monitor whose wait timed out belongs to its holder

require "monitor"
monitor = Monitor.new
over = Queue.new
holder = task { monitor.synchronize { over.pop } }
settle
say attempt { Timeout.timeout(0.02) { monitor.synchronize { :mine } } }
over << :held
say holder.value, monitor.synchronize { monitor.synchronize { :twice } }, monitor.mon_locked?
