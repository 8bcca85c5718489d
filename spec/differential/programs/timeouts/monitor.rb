# frozen_string_literal: true

# A monitor whose wait timed out belongs to its holder

require "monitor"
monitor = Monitor.new
holder = task { monitor.synchronize { sleep(0.1) && :held } }
settle
say attempt { Timeout.timeout(0.02) { monitor.synchronize { :mine } } }
say holder.value, monitor.synchronize { monitor.synchronize { :twice } }, monitor.mon_locked?
