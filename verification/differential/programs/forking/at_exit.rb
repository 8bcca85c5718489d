# frozen_string_literal: true

# A child that ends by itself runs at_exit blocks once, as the parent does

at_exit { say "at_exit #{Process.pid == $parent}" }
$parent = Process.pid
pid = fork { nil }
Process.wait(pid)
say $CHILD_STATUS.exitstatus
