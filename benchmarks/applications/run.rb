# frozen_string_literal: true

require "fileutils"
require_relative "application_server"
require_relative "picture"
require_relative "../report/format"
require_relative "../report/statistics"
require_relative "../run/machine"
require_relative "../../verification/ecosystem/harness/servers"

# Measures Puma with its threads and with `plugin :heddle`, and Async's server, in alternation, by `wrk`. See the README
# beside this folder.
class ApplicationBenchmark
  # Name, path, clients; and the path and number of the clients beside.
  SCENARIOS = [
    ["fast page", "/hello", 1, nil, 0],
    ["fast page beside 2 CPU-heavy clients", "/hello", 1, "/cpu", 2],
    ["fast page beside 8 CPU-heavy clients", "/hello", 1, "/cpu", 8],
    ["fast page beside 20 waiting clients", "/hello", 1, "/slow", 20],
    ["slow page, 200 clients", "/slow", 200, nil, 0],
    ["fast page, 64 clients", "/hello", 64, nil, 0],
    ["slow page, 500 clients", "/slow", 500, nil, 0]
  ].freeze
  # Of the Rails application, if there is a PostgreSQL server.
  QUERIES = ["fast page beside 20 clients that query", "/hello", 1, "/query", 20].freeze
  # The scenario of the picture.
  DRAWN = "fast page beside 2 CPU-heavy clients"
  DRAWN_SERVERS = ["Puma, 5 threads", ApplicationServer::SHORT_SLICE, ApplicationServer::HEDDLE].freeze
  PICTURES = "tmp/benchmarks"
  COLUMNS = { rate: "per second", p50: "p50, ms", p99: "p99, ms", cpu: "CPU, µs", memory: "memory, MB" }.freeze
  UNITS = { "us" => 0.001, "ms" => 1.0, "s" => 1000.0, "m" => 60_000.0 }.freeze

  def initialize(app, rounds:, seconds:)
    @app = app
    @rounds = rounds
    @seconds = seconds
    @results = Hash.new { |results, key| results[key] = [] }
    @contestants = ApplicationServer.available
    @servers = Ecosystem::Servers.new
  end

  def run
    @database = @servers.start(:postgres) if @app == "rails.ru" && @servers.available?(:postgres)
    @rounds.times do |round|
      Machine.print_max_gap
      @contestants.rotate(round).each { |name| measure(name) }
    end
    report
    draw
  ensure
    @database&.stop
    @servers.close
  end

  private

  def scenarios = @database ? [*SCENARIOS, QUERIES] : SCENARIOS

  def environment
    @database ? { "DATABASE_URL" => "postgresql://postgres@127.0.0.1:#{@database.port}/postgres?pool=32" } : {}
  end

  def measure(name)
    scenarios.each do |scenario, path, clients, beside, beside_clients|
      # A server for each scenario, so that none inherits the memory of the one before.
      server = ApplicationServer.new(name, @app, environment)
      load = start_load(server.url(beside), beside_clients) if beside
      @results[[scenario, name]] << wrk(server, path, clients).merge(memory: server.memory)
    ensure
      stop_load(load) if load
      server&.stop
    end
  end

  def start_load(url, clients)
    spawn("wrk", "-t1", "-c#{clients}", "-d#{@seconds + 60}", url, %i[out err] => File::NULL).tap { sleep 0.5 }
  end

  def stop_load(pid)
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def wrk(server, path, clients)
    before = server.cpu
    output = IO.popen(["wrk", "-t1", "-c#{clients}", "-d#{@seconds}", "--timeout", "30", "--latency",
                       server.url(path)], &:read)
    # Per request. It includes what the server does for the clients beside.
    cpu = (server.cpu - before) / [output[/(\d+) requests in/, 1].to_i, 1].max * 1e6
    rate = output[%r{Requests/sec:\s+([\d.]+)}, 1].to_f
    p50, p99 = %w[50% 99%].map do |percentile|
      value, unit = output.match(/#{percentile}\s+([\d.]+)(us|ms|s|m)/)&.captures
      value ? value.to_f * UNITS.fetch(unit) : nil
    end
    { rate:, p50:, p99:, cpu: }
  end

  def report
    ApplicationServer.left_out.each { |name, reason| puts "left out: #{name}: #{reason}" }
    puts
    puts "| | | #{COLUMNS.values.join(" | ")} |", "|---|---|#{"---|" * COLUMNS.size}"
    scenarios.map(&:first).product(@contestants).each do |scenario, name|
      rounds = @results[[scenario, name]]
      figures = COLUMNS.keys.map { |key| Format.summary(rounds.filter_map { |round| round[key] }) }
      puts "| #{[scenario, name, *figures].join(" | ")} |"
    end
  end

  def draw
    groups = [Picture::Group.new("pages per second", drawn(:rate)),
              Picture::Group.new("p99 of a page's latency, in ms", drawn(:p99))]
    FileUtils.mkdir_p(PICTURES)
    file = File.join(PICTURES, "#{File.basename(@app, ".ru")}.svg")
    File.write(file, Picture.new("A #{DRAWN}", groups, footer:).to_s)
    puts "", "#{file}: the picture of a #{DRAWN}"
  end

  def drawn(key)
    (DRAWN_SERVERS & @contestants).map do |name|
      values = @results[[DRAWN, name]].filter_map { |round| round[key] }
      [name, Statistics.median(values), Format.summary(values)]
    end
  end

  def footer
    machine = Machine.describe
    "#{@app}, median of #{@rounds} rounds of #{@seconds} s, wrk on the same machine; Ruby #{RUBY_VERSION}, " \
      "Puma #{ApplicationServer.version_of("puma")}, #{machine[:processors]} processors, #{machine[:kernel]}"
  end
end

if $PROGRAM_NAME == __FILE__
  require "bundler"
  Machine.need("wrk")
  rounds = Integer(ENV.fetch("ROUNDS", "5"))
  ApplicationBenchmark.new(ARGV.fetch(0), rounds:, seconds: Integer(ENV.fetch("SECONDS", "5"))).run
end
