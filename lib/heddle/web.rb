# frozen_string_literal: true

require "json"
require_relative "../heddle"

unless Heddle.supported?
  require_relative "web/unsupported"
  return
end

require_relative "metrics/lag_probe"
require_relative "web/access"
require_relative "web/answers"
require_relative "web/assets"
require_relative "web/fiber_filter"
require_relative "web/fiber_rows"
require_relative "web/fibers_report"
require_relative "web/backtraces_report"
require_relative "web/kept_answers"
require_relative "web/names_report"
require_relative "web/origin"
require_relative "web/own_requests"
require_relative "web/parameters"
require_relative "web/stall_log"
require_relative "web/stats_report"
require_relative "web/trace_download"

module Heddle
  # The dashboard: what is slow, what takes the CPU, what fibers wait for and which are late, by the names of requests
  # and jobs; the lag and load of each scheduler, the fibers with their backtraces, and recent stalls. A button records
  # a trace. `require "heddle/web"` loads it.
  #
  # It is a Rack application for any mount point, and needs no gem. It changes nothing in the process. It costs nothing
  # while no page is open; an open page asks once a second. In a cluster it shows the worker process that answers.
  #
  # Until {authorize} has been called, it refuses every request outside of development and test, and in them those to
  # other hosts than this machine. A trace that another site's page asks for is always refused.
  #
  # @example config/routes.rb of a Rails application
  #   require "heddle/web"
  #
  #   Heddle::Web.authorize { |env| env["warden"].user&.admin? }
  #   Rails.application.routes.draw { mount Heddle::Web => "/heddle" }
  # @example config.ru
  #   require "heddle/web"
  #
  #   map("/heddle") { run Heddle::Web }
  class Web
    # The application without a rule for access.
    @default = PerProcess.new { new(Access.new) }

    class << self
      # Lets requests in for which the block returns true. A further call replaces the block. What it raises is raised
      # in the server, which answers with an error.
      #
      # @yieldparam env [Hash] the request's Rack environment
      # @yieldreturn [Boolean]
      # @return [void]
      # @raise [ArgumentError] without a block
      # @example With another middleware that has checked the request
      #   Heddle::Web.authorize { true }
      def authorize(&rule)
        ArgumentChecks.block(rule, "Heddle::Web.authorize")
        @app = new(Access.new(rule))
        nil
      end

      # Answers a request, as Rack specifies it.
      #
      # @param env [Hash]
      # @return [Array(Integer, Hash, #each)]
      def call(env) = app.call(env)

      # @api private
      # @return [Boolean] whether all requests are refused, until {authorize} is called
      def refuses? = app.refuses?

      # @api private
      # @param path [String] below the mount point
      # @return [Boolean] whether there is an answer
      def path?(path) = REPORTS.key?(path) || Assets.at?(path) || path == TRACE

      private

      # Kept, as an application keeps answers for a while.
      def app = @app || @default.get
    end

    # @api private
    # @param access [Access]
    def initialize(access)
      @access = access
      # A forked child may come while fibers of its parent make reports, which hold locks.
      @kept = PerProcess.new { KeptAnswers.new }
    end

    # @api private
    def refuses? = @access.refuses?

    # @api private
    def call(env)
      refusal = @access.refusal(env)
      answer = refusal ? Answers.text(403, refusal) : route(env)
      env["REQUEST_METHOD"] == "HEAD" ? Answers.without_body(answer) : answer
    end

    private

    REPORTS = { "/names.json" => NamesReport, "/fibers.json" => FibersReport, "/backtraces.json" => BacktracesReport,
                "/stats.json" => StatsReport, "/stalls.json" => StallLog }.freeze
    READING = %w[GET HEAD].freeze
    TRACE = "/trace"
    private_constant :REPORTS, :READING, :TRACE

    def route(env)
      path = env["PATH_INFO"].to_s
      return trace(env) if path == TRACE
      return unknown(path, env) unless REPORTS.key?(path) || Assets.at?(path)
      return Answers.not_allowed(READING) unless READING.include?(env["REQUEST_METHOD"])

      REPORTS.key?(path) ? report(REPORTS[path], env) : Answers.asset(*Assets.read(path, env["SCRIPT_NAME"].to_s))
    end

    def unknown(path, env)
      Answers.text(404, "#{Text.clean(path)} is not here. The dashboard is at #{Text.clean(env["SCRIPT_NAME"].to_s)}/.")
    end

    def trace(env)
      return Answers.not_allowed(%w[POST]) unless env["REQUEST_METHOD"] == "POST"

      refusal = Origin.refusal(env)
      refusal ? Answers.text(403, refusal) : TraceDownload.answer
    end

    def report(type, env)
      mount = env["SCRIPT_NAME"].to_s
      begin
        report = type.new(URI.decode_www_form(env["QUERY_STRING"].to_s).to_h, mount)
      rescue ArgumentError => e
        return Answers.text(400, e.message)
      end
      return Answers.json(JSON.generate(report.to_h)) unless report.key

      # The scheduler of the server's thread comes first in a report.
      key = [type, mount, Fiber.scheduler.object_id, *report.key]
      Answers.json(@kept.get.fetch(key) { JSON.generate(report.to_h) })
    end
  end
end
