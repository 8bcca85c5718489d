# frozen_string_literal: true

require "cgi/escape"

module Heddle
  class Web
    # The files of the page. None of them comes from another host.
    #
    # @api private
    module Assets
      FOLDER = File.expand_path("assets", __dir__)
      SCRIPTS = %w[page.js client.js elements.js fibers.js frames.js names.js rows.js schedulers.js split.js
                   stalls.js timeline.js].freeze
      FILES = {
        "" => ["index.html", "text/html; charset=utf-8"],
        "/" => ["index.html", "text/html; charset=utf-8"],
        "/page.css" => ["page.css", "text/css; charset=utf-8"],
        **SCRIPTS.to_h { |name| ["/#{name}", [name, "text/javascript; charset=utf-8"]] },
        "/icon.svg" => ["icon.svg", "image/svg+xml"],
        "/uplot.css" => ["uplot/uPlot.min.css", "text/css; charset=utf-8"],
        "/uplot.js" => ["uplot/uPlot.iife.min.js", "text/javascript; charset=utf-8"]
      }.freeze
      # Where the page is mounted, in the page.
      MOUNT = "{{mount}}"
      private_constant :FOLDER, :SCRIPTS, :FILES, :MOUNT

      module_function

      # @param path [String]
      # @return [Boolean]
      def at?(path) = FILES.key?(path)

      # @param path [String] one of the files' paths
      # @param mount [String] where the application is mounted, as `SCRIPT_NAME` has it
      # @return [Array(String, String)] the content and its type
      def read(path, mount)
        name, type = FILES.fetch(path)
        content = File.read(File.join(FOLDER, name), encoding: Encoding::UTF_8)
        # By a block: a text to replace by may name what was found.
        content = content.gsub(MOUNT) { CGI.escapeHTML(Text.clean(mount)) } if name == "index.html"
        [content, type]
      end
    end
    private_constant :Assets
  end
end
