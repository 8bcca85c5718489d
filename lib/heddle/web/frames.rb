# frozen_string_literal: true

require "rbconfig"

module Heddle
  class Web
    # Tells the frames of the program from those of Ruby and of gems, which the page folds.
    #
    # @api private
    module Frames
      # A gem's folder: `…/gems/puma-8.0.2/`, or `…/bundler/gems/puma-3f2a91c/`.
      GEM = %r{/gems/([^/]+?)-(?:\d[^/]*|\h{7,})/}
      INTERNAL = "<internal:"
      RUBY = "Ruby"
      # The folders of Ruby's own libraries, and of those that a distribution has as packages of its own.
      FOLDERS = RbConfig::CONFIG.values_at("rubylibprefix", "rubylibdir", "vendordir", "sitedir").compact
                                .map { |folder| "#{folder}/" }.freeze
      PACKAGES = RbConfig::CONFIG.values_at("vendordir", "sitedir").compact.map { |folder| "#{folder}/" }.freeze
      private_constant :GEM, :INTERNAL, :RUBY, :FOLDERS, :PACKAGES

      class << self
        # @param lines [Array<String>] a backtrace
        # @return [Array<Hash>] of each line its `text`, and `from`: the gem's name or "Ruby"; nil for the program's own
        def of(lines) = lines.map { |line| { text: Text.clean(line), from: origin(line.b) } }

        private

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
    end
    private_constant :Frames
  end
end
