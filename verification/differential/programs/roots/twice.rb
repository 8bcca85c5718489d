# frozen_string_literal: true

# A thread may begin and end with tasks again and again

say(Array.new(5) do |number|
  scheduled do
    reader, writer = IO.pipe
    waiter = task { reader.read(1) }
    settle
    writer.write(number.to_s)
    waiter.value
  end
end)
