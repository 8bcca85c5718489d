# frozen_string_literal: true

module Heddle
  class Web
    # The backtraces of some fibers. It tells the frames of the program from those of Ruby and of gems, which the page
    # folds.
    #
    # @api private
    class BacktracesReport
      # How many fibers a request may ask for.
      LIMIT = 50
      # A gem's folder: `…/gems/puma-8.0.2/`, or `…/bundler/gems/puma-3f2a91c/`.
      GEM = %r{/gems/([^/]+?)-(?:\d[^/]*|\h{7,})/}
      INTERNAL = "<internal:"
      RUBY = "Ruby"
      # The folders of Ruby's own libraries, and of those that a distribution has as packages of its own.
      FOLDERS = RbConfig::CONFIG.values_at("rubylibprefix", "rubylibdir", "vendordir", "sitedir").compact
                                .map { |folder| "#{folder}/" }.freeze
      PACKAGES = RbConfig::CONFIG.values_at("vendordir", "sitedir").compact.map { |folder| "#{folder}/" }.freeze
      private_constant :LIMIT, :GEM, :INTERNAL, :RUBY, :FOLDERS, :PACKAGES

      # @param parameters [Hash{String => String}] the request's: `ids`, with commas between them
      def initialize(parameters, _mount)
        @ids = parameters["ids"].to_s.split(",").first(LIMIT).map(&:to_i)
      end

      # @return [nil] the report is made anew for each request
      def key = nil

      # @return [Hash] `fibers` has the name that each fiber has now, and its backtrace, which is empty for a fiber that
      #   has not started: of each line its `text`, and `from`, which is the gem's name or "Ruby", and nil for the
      #   program's own. A fiber that has ended is left out.
      def to_h
        found = Snapshots.take.flat_map(&:fibers).select { |entry| @ids.include?(entry.fiber.object_id) }
        { pid: Process.pid, fibers: found.map { |entry| describe(entry.fiber) } }
      end

      private

      # In this order: a fiber has a request's name before it runs the request's code. A backtrace of the next request
      # must not get the name of the last one.
      def describe(fiber)
        backtrace = Backtraces.of(fiber).map { |line| { text: Text.clean(line), from: origin(line.b) } }
        { id: fiber.object_id, name: Text.of_name(Names.of(fiber)), backtrace: }
      end

      def origin(line)
        line.start_with?(INTERNAL) ? RUBY : gem(line) || library(line)
      end

      # The program itself may be below a folder that is called `gems`, and have gems below its own folder.
      def gem(line) = Text.clean(line.delete_prefix(root)[GEM, 1])

      def library(line)
        return unless FOLDERS.any? { |folder| line.start_with?(folder) }

        package = PACKAGES.find { |folder| line.start_with?(folder) }
        package ? Text.clean(line.delete_prefix(package)[%r{\A[^/:.]+}]) : RUBY
      end

      def root
        defined?(::Rails) && ::Rails.respond_to?(:root) && ::Rails.root ? ::Rails.root.to_s.b : Dir.pwd.b
      end
    end
    private_constant :BacktracesReport
  end
end
