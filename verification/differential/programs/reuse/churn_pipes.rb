# frozen_string_literal: true

# Pipes that are opened, closed and reused deliver their own bytes

tallies = Array.new(8) do |number|
  task do
    Array.new(10) do |round|
      message = bytes(100_000, (number * 1000) + round)
      reader, writer = IO.pipe(binmode: true)
      feeder = task { writer.write(message).tap { writer.close } }
      fine = reader.read == message
      reader.close
      [fine, feeder.value]
    end
  end
end
say tallies.flat_map(&:value).tally
