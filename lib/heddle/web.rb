# frozen_string_literal: true

require_relative "../heddle"
require_relative "argument_checks"
require_relative "metrics/lag_probe"
require_relative "web/access"
require_relative "web/answers"
require_relative "web/assets"
require_relative "web/fiber_filter"
require_relative "web/fiber_rows"
require_relative "web/fibers_report"
require_relative "web/origin"
require_relative "web/stall_log"
require_relative "web/stats_report"
require_relative "web/trace_download"

module Heddle
  # A page that shows what the fibers of this process do: lag and load of each scheduler, the fibers as a tree with
  # their backtraces, and recent stalls. A button records a trace. `require "heddle/web"` loads it.
  #
  # It is a Rack application for any mount point, and needs no gem. It changes nothing in the process. It costs nothing
  # while no page is open; an open page asks once a second. In a cluster it shows the worker process that answers.
  #
  # Outside of development and test it refuses every request until {authorize} has been called. All other requests to
  # it are refused if they come from another site's page.
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

      private

      def app = @app || new(Access.new)
    end

    # @api private
    # @param access [Access]
    def initialize(access)
      @access = access
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

    REPORTS = { "/stats.json" => StatsReport, "/fibers.json" => FibersReport, "/stalls.json" => StallLog }.freeze
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
      Answers.text(404, "#{Text.clean(path)} is not here. The page is at #{Text.clean(env["SCRIPT_NAME"].to_s)}/.")
    end

    def trace(env)
      return Answers.not_allowed(%w[POST]) unless env["REQUEST_METHOD"] == "POST"

      refusal = Origin.refusal(env)
      refusal ? Answers.text(403, refusal) : TraceDownload.answer
    end

    def report(type, env)
      Answers.json(200, type.report(URI.decode_www_form(env["QUERY_STRING"].to_s).to_h))
    rescue ArgumentError => e
      Answers.text(400, e.message)
    end
  end
end
