# frozen_string_literal: true

require "logger"
require "tmpdir"

Ecosystem.library "Logger", requires: "logger", version: -> { Logger::VERSION } do
  # Ten tasks write to a log that is rotated by its size.
  def works(_client)
    Dir.mktmpdir do |folder|
      path = File.join(folder, "log")
      logger = Logger.new(path, 50, 10_000, formatter: ->(*, message) { "#{message}\n" })
      done = Queue.new
      10.times { |number| task { 200.times { |line| logger.info("#{number} #{line}") } && done.push(true) } }
      10.times { done.pop }
      logger.close
      lines = Dir["#{path}*"].flat_map { |file| File.readlines(file) }.grep_v(/^#/)
      [lines.size, lines.uniq.size]
    end
  end

  def task(&) = defined?(Heddle) ? Fiber.schedule(&) : Thread.new(&)
end
