# frozen_string_literal: true

# exec runs no at_exit block

at_exit { say :at_exit }
exec("true")
