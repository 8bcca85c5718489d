# frozen_string_literal: true

# What several processors bring: worker processes of Puma with `plugin :heddle` and, on Ruby 4.0, Ractors for which
# threads of a `Heddle::ThreadPool` wait.
#
#   ruby -Ilib benchmarks/cores.rb [rounds]      five by default; two minutes
#
# Needs wrk and Puma. The clients of a page that computes for 35 ms take next to no CPU time themselves, so the workers
# have all processors. Clients of a fast page need a processor of their own: for these, CPU time per request tells more
# than the rate.

require "bundler"
require "etc"
require "heddle"
require_relative "applications/application_server"
require_relative "report/format"
require_relative "run/clock"
require_relative "run/machine"

# Measures in alternation, and prints a line for each measurement.
class Cores
  PROCESSORS = Etc.nprocessors
  SECONDS = 4
  # Path, and number of clients for each worker.
  PAGES = { "/cpu" => 8, "/hello" => 32 }.freeze
  # Jobs for Ractors.
  COMPUTATIONS = 8

  def initialize(rounds)
    @rounds = rounds
    @figures = Hash.new { |all, key| all[key] = [] }
  end

  def run
    @rounds.times do
      [1, PROCESSORS].each { |count| measure(count) }
    end
    @figures.each { |name, values| puts "#{name}: #{Format.summary(values)}" }
    puts "#{@rounds} rounds, #{PROCESSORS} processors, Ruby #{RUBY_VERSION}"
  end

  private

  def measure(count)
    PAGES.each { |path, clients| serve(path, clients * count, count) }
    compute(count) if Ractor.method_defined?(:value)
  end

  def serve(path, clients, workers)
    server = ApplicationServer.new(ApplicationServer::HEDDLE, "rack.ru", further: "workers #{workers}")
    before = server.cpu
    output = IO.popen(["wrk", "-t1", "-c#{clients}", "-d#{SECONDS}", "--timeout", "30", server.url(path)], &:read)
    name = "#{path}, #{workers} worker processes"
    @figures["#{name}, per second"] << output[%r{Requests/sec:\s+([\d.]+)}, 1].to_f
    @figures["#{name}, CPU in µs"] << ((server.cpu - before) / output[/(\d+) requests in/, 1].to_i * 1e6)
  ensure
    server&.stop
  end

  def compute(ractors)
    pool = Heddle::ThreadPool.new(threads: ractors)
    began = Clock.now
    Heddle.map(1..COMPUTATIONS) do
      pool.process { Ractor.new(3_000_000) { |turns| turns -= 1 while turns.positive? }.value }
    end
    @figures["#{ractors} Ractors, computations per second"] << (COMPUTATIONS / (Clock.now - began))
  ensure
    pool&.close
  end
end

Machine.need("wrk")
Cores.new(Integer(ARGV.fetch(0, "5"))).run
