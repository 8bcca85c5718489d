# frozen_string_literal: true

require "yaml"

module Torture
  # The test suite of a Ruby source tree.
  class Suite
    FILES = File.join(__dir__, "files.yml")

    attr_reader :tree

    # @param tree [String] where Ruby's sources are
    def initialize(tree)
      @tree = File.realpath(tree)
      @patterns = YAML.safe_load_file(FILES)
      raise ArgumentError, "#{tree} is no Ruby source tree: tool/lib/test/unit.rb is missing" unless suite?
    end

    # @param mode ["waiting", "preempted"]
    # @param names [Array<String>] parts of names; all files if there are none. A name of a file that belongs to no
    #   mode counts, too.
    # @return [Array<String>] the mode's files, relative to the tree, those that take longest first
    def files(mode, names)
      return matching(["**/test_*.rb"]).select { |file| names.any? { |name| file.include?(name) } } if names.any?

      files = matching(@patterns.fetch(mode)) - matching(@patterns.fetch("left_out"))
      return files if mode == "waiting"

      files - (matching(@patterns.fetch("waiting")) - matching(@patterns.fetch("both")))
    end

    private

    def suite? = File.exist?(File.join(@tree, "tool/lib/test/unit.rb"))

    def matching(patterns)
      patterns.flat_map { |pattern| Dir.glob("test/#{pattern}", base: @tree).sort }.uniq
    end
  end
end
