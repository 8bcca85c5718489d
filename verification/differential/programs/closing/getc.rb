# frozen_string_literal: true

# IO#getc and IO#getbyte end with IOError when the IO is closed

outcomes = %i[getc getbyte readchar readbyte].map do |method|
  reader, _writer = IO.pipe
  waiter = task { attempt { reader.public_send(method) } }
  settle
  reader.close
  waiter.value
end
say outcomes
