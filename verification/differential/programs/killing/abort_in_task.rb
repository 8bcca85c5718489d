# frozen_string_literal: true

# Kernel#abort in a task ends the process with status 1

at_exit { say :at_exit }
task { settle && abort("the end") }.value
