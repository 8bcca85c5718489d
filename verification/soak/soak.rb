# frozen_string_literal: true

# Lets a Puma with `plugin :heddle` serve clients of all kinds for a long time, and prints each minute what the process
# has: memory, descriptors, threads and fibers. None may grow, no answer may be wrong, and after the last client only
# what was there before the first may be left.
#
#   MINUTES=120 ruby -Ilib verification/soak/soak.rb

require "json"
require "net/http"
require_relative "../../benchmarks/applications/application_server"
require_relative "../ecosystem/harness/servers"
require_relative "clients"

module Soak
  # One run.
  class Run
    # How many clients of a kind there are, and how many seconds each pauses.
    KINDS = { Hello => [4, 0.02], Compute => [1, 0.5], Wait => [8, 0.01], Query => [4, 0.05], Upload => [2, 0.1],
              WebSockets => [4, 0.05], Aborted => [2, 0.1] }.freeze
    COLUMNS = ["minute", "memory, MB", "descriptors", "threads", "fibers", "live objects", "answers", "wrong"].freeze
    # What the last client must leave as the first one found it, and seconds until then.
    LEFT = %i[descriptors threads fibers].freeze
    SETTLED = 30
    # By how much the memory of the last quarter may be above that of the second.
    GROWTH = 1.05
    # Minutes until a run has quarters that can be compared.
    WARM = 20

    def initialize(minutes)
      @minutes = minutes
      @servers = Ecosystem::Servers.new
      @database = @servers.start(:postgres) if @servers.available?(:postgres)
      @server = ApplicationServer.new(ApplicationServer::HEDDLE, "../../verification/soak/application.ru", variables)
      @rows = []
    end

    # @return [Boolean] whether nothing has grown, and no answer was wrong
    def run
      before = state
      puts row(COLUMNS), row(COLUMNS.map { "---:" })
      clients = start
      observe(clients)
      clients.each(&:end)
      wrong = clients.flat_map(&:wrong)
      puts wrong.first(10)
      grown = grown(before)
      puts grown
      wrong.empty? && grown.empty?
    ensure
      @server&.stop
      @database&.stop
      @servers.close
    end

    private

    def variables
      @database ? { "DATABASE_URL" => "postgresql://postgres@127.0.0.1:#{@database.port}/postgres" } : {}
    end

    def start
      kinds = @database ? KINDS : KINDS.except(Query)
      kinds.flat_map { |kind, (count, pause)| Array.new(count) { kind.new(@server.port, pause) } }
    end

    def observe(clients)
      @minutes.times do |minute|
        sleep(60)
        @rows << state
        figures = @rows.last.values_at(:memory, :descriptors, :threads, :fibers, :live)
        puts row([minute + 1, *figures, clients.sum(&:answers), clients.sum { |client| client.wrong.size }])
        $stdout.flush
      end
    end

    def state
      under_way = JSON.parse(Net::HTTP.get(URI(@server.url("/under_way"))), symbolize_names: true)
      folder = "/proc/#{@server.pid}"
      { **under_way, memory: @server.memory.round(1), descriptors: Dir.children("#{folder}/fd").size,
                     threads: Dir.children("#{folder}/task").size }
    end

    def grown(before)
      after = settled(before)
      left = LEFT.select { |what| after[what] > before[what] }
      left.map { |what| "#{what}: #{before[what]} before the first client, #{after[what]} after the last" } + risen
    end

    # What is left when all clients have gone.
    def settled(before)
      after = nil
      SETTLED.times do
        after = state
        break if LEFT.all? { |what| after[what] <= before[what] }

        sleep(1)
      end
      after
    end

    def risen
      return [] if @rows.size < WARM

      quarters = @rows.each_slice((@rows.size / 4.0).ceil).to_a
      %i[memory live].filter_map do |what|
        second, last = quarters.values_at(1, -1).map { |rows| rows.map { |row| row[what] }.sort[rows.size / 2] }
        "#{what}: #{second} in the second quarter, #{last} in the last" if last > second * GROWTH
      end
    end

    def row(cells) = "| #{cells.join(" | ")} |"
  end
end

exit(Soak::Run.new(Integer(ENV.fetch("MINUTES", "120"))).run)
