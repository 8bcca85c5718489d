# frozen_string_literal: true

# SIGCHLD reaches its handler, and the child can be waited for

count = 0
trap("CHLD") { count += 1 }
pid = spawn("true")
say Process.wait(pid) == pid
sleep(0.001) until count.positive?
say count
