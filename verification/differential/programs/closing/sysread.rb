# frozen_string_literal: true

# IO#sysread and IO#readpartial end with IOError when the IO is closed

outcomes = %i[sysread readpartial].map do |method|
  reader, _writer = IO.pipe
  waiter = task { attempt { reader.public_send(method, 10) } }
  settle
  reader.close
  waiter.value
end
say outcomes
