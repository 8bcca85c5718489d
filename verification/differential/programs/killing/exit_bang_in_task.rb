# frozen_string_literal: true

# Kernel#exit! in a task ends the process at once

at_exit { say :at_exit }
task { settle && exit!(6) }
sleep
