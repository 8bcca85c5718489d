# frozen_string_literal: true

# A pipe that is set to blocking mode makes only its reader wait

require "io/nonblock"
reader, writer = IO.pipe
reader.nonblock = false
ticks = 0
ticker = task { 10.times { sleep(0.005) && (ticks += 1) } }
feeder = task { ticker.join && writer.write("late") }
say reader.readpartial(10), ticks, ticker.join.alive?, feeder.value
