# frozen_string_literal: true

# exit in a trap handler ends the program although tasks wait

trap("TERM") { exit(9) }
scheduled do
  task { sleep }
  task { IO.pipe { |reader, _| reader.read } }
  Thread.new { settle && Process.kill(:TERM, Process.pid) }
  sleep
end
say :never
