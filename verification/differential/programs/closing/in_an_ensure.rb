# frozen_string_literal: true

# The `ensure` of a killed task closes the IO that another task reads

reader, writer = IO.pipe
waiter = task { attempt { reader.read(1) } }
owner = task do
  sleep
ensure
  reader.close
end
settle
owner.kill
owner.join
say waiter.value, attempt { writer.write("x") }
