# frozen_string_literal: true

# An ignored signal does nothing, and default behaviour can be had again

trap("USR1", "IGNORE")
Process.kill(:USR1, Process.pid)
settle
say :alive
say trap("USR1", "DEFAULT")
Process.kill(:USR1, Process.pid)
sleep
say :never
