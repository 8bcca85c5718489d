# frozen_string_literal: true

# A library that uses fibers, whether or not its caller does: `Heddle.run` within `Heddle.run` runs in place.
#
#   ruby -Ilib examples/api/library.rb
#
# A nested call is a scope. It ends when the fibers that were started in it have ended, and does not wait for others.

require "heddle"

# The library. Its callers need to know nothing of Heddle.
module Weather
  CITIES = { "Oslo" => 3, "Lima" => 19, "Pune" => 31 }.freeze

  def self.ask(city)
    sleep 0.1
    CITIES.fetch(city)
  end

  # Asks for all cities at once.
  def self.all(cities)
    Heddle.run do
      fibers = cities.map { |city| Heddle.spin { ask(city) } }
      cities.zip(Heddle.await_all(*fibers)).map { |city, degrees| "#{city} #{degrees} C" }.join(", ")
    end
  end
end

puts "without a scheduler: #{Weather.all(%w[Oslo Lima])}"

Heddle.run do
  ticks = 0
  clock = Heddle.spin(background: true) { Heddle.every(0.01) { ticks += 1 } }
  puts "in a fiber:          #{Weather.all(%w[Lima Pune])}"
  puts "the clock continues" if ticks.positive? && clock.alive?

  begin
    Weather.all(%w[Oslo Atlantis])
  rescue KeyError => e
    puts "its error:           #{e.message}"
  end
end
