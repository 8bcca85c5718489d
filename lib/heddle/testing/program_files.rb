# frozen_string_literal: true

module Heddle
  module Testing
    # The files in which the program's points lie.
    class ProgramFiles
      # What marks the folder of a project.
      MARKS = %w[Gemfile gems.rb Rakefile .git *.gemspec].freeze
      LIBRARY = File.expand_path("../..", __dir__)
      # How Ruby names the code of a String that is evaluated without the name of a file.
      EVALUATED = /\A\(eval at (?<path>.+):(?<line>\d+)\)\z/m
      private_constant :MARKS, :LIBRARY, :EVALUATED

      # @param caller_path [String, nil] the file that calls
      # @param paths [Array<String>, nil] files and folders
      def initialize(caller_path, paths)
        @caller_path = caller_path && evaluating(caller_path).first
        @root = root
        @folders = paths ? paths.map { |path| File.expand_path(path) } : [@root]
        @excluded = paths ? [] : gems
        @explicit = !paths.nil?
        @evaluated = Hash.new { |evaluated, path| evaluated[path] = own?(evaluating(path).first) }
        @known = known
        @sources = Hash.new { |sources, path| sources[path] = read(path) }
      end

      # @param path [String, nil] as Ruby names it
      # @return [Boolean]
      def include?(path) = @known[path]

      # @return [String] the path and the line, for a report
      def place(path, line)
        outer, at = evaluating(path)
        return "#{place(outer, at)} (eval:#{line})" if at

        full = File.expand_path(path)
        short = full.start_with?("#{@root}/") ? full.delete_prefix("#{@root}/") : path
        "#{Text.clean(short)}:#{line}"
      end

      # @return [String, nil] the line of the source, or the one that evaluates it, if its file can be read
      def source(path, line)
        outer, at = evaluating(path)
        @sources[outer][(at || line) - 1]&.scrub&.strip
      end

      private

      # By identity, as Ruby has one String for the path of a file. It has a new one for each evaluation, however.
      def known
        Hash.new { |known, path| evaluated?(path) ? @evaluated[path] : known[path] = own?(path) }.compare_by_identity
      end

      def root
        return Dir.pwd unless @caller_path && File.file?(@caller_path)

        project(File.dirname(File.expand_path(@caller_path)))
      end

      def read(path)
        File.file?(path) ? File.readlines(path, encoding: Encoding::UTF_8, chomp: true) : []
      rescue SystemCallError
        []
      end

      def evaluated?(path) = path&.start_with?("(eval at ")

      # @return [Array(String, Integer), Array(String)] the file and the line that evaluate the code, if it is a String
      def evaluating(path)
        found = EVALUATED.match(path)
        return [path] unless found

        outer, line = evaluating(found[:path])
        [outer, line || Integer(found[:line], 10)]
      end

      def own?(path)
        return true if path == @caller_path && !@explicit
        # Ruby's own code, and code in Strings that names no file. An Enumerator that ends has no path.
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
