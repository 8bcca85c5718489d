# frozen_string_literal: true

module Heddle
  module Testing
    # The files in which the program's points lie.
    class ProgramFiles
      # What marks the folder of a project.
      MARKS = %w[Gemfile gems.rb Rakefile .git *.gemspec].freeze
      LIBRARY = File.expand_path("../..", __dir__)
      private_constant :MARKS, :LIBRARY

      # @param caller_path [String, nil] the file that calls
      # @param paths [Array<String>, nil] files and folders
      def initialize(caller_path, paths)
        @caller_path = caller_path
        @root = caller_path && File.file?(caller_path) ? project(File.dirname(File.expand_path(caller_path))) : Dir.pwd
        @folders = paths ? paths.map { |path| File.expand_path(path) } : [@root]
        @excluded = paths ? [] : gems
        @explicit = !paths.nil?
        # By identity, as Ruby has one String for the path of a file.
        @known = Hash.new { |known, path| known[path] = own?(path) }.compare_by_identity
      end

      # @param path [String, nil] as Ruby names it
      # @return [Boolean]
      def include?(path) = @known[path]

      # @return [String] the path and the line, for a report
      def place(path, line)
        full = File.expand_path(path)
        short = full.start_with?("#{@root}/") ? full.delete_prefix("#{@root}/") : path
        "#{Text.clean(short)}:#{line}"
      end

      # @return [String, nil] the line of the source, if its file can be read
      def source(path, line)
        @sources ||= {}
        @sources[path] ||= File.file?(path) ? File.readlines(path, encoding: Encoding::UTF_8, chomp: true) : []
        @sources[path][line - 1]&.scrub&.strip
      rescue SystemCallError
        nil
      end

      private

      def own?(path)
        return true if path == @caller_path && !@explicit
        # Ruby's own code, and code in Strings. An Enumerator that ends has no path.
        return false if path.nil? || path.start_with?("<", "(")

        full = File.expand_path(path)
        under?(full, @folders) && !under?(full, @excluded)
      end

      def under?(full, folders) = folders.any? { |folder| full == folder || full.start_with?("#{folder}/") }

      def gems
        config = RbConfig::CONFIG
        folders = Gem.path + [LIBRARY] + config.values_at("rubylibdir", "sitelibdir", "vendorlibdir", "rubyarchdir")
        folders.compact.map { |folder| File.expand_path(folder) } + [File.join(@root, "vendor")]
      end

      def project(folder)
        above = folder
        loop do
          return above if MARKS.any? { |mark| !Dir.glob(mark, File::FNM_DOTMATCH, base: above).empty? }

          higher = File.dirname(above)
          return folder if higher == above

          above = higher
        end
      end
    end
    private_constant :ProgramFiles
  end
end
