# frozen_string_literal: true

require "tsort"

# Which files of a crate import which, by the paths in their code that begin with `crate`, `self` or `super`. What a
# `mod` declares is no import. Nor does a file import the parent of its own module, whose type it may have an `impl` of;
# what the parent re-exports is imported from there.
class Imports
  include TSort

  LIST = /(?<list>\{(?:[^{}]|\g<list>)*\})/
  PATH = /\b(?:crate|self|super)(?:::(?:\w+|#{LIST}))+/
  ITEM = /(?:[^,{}]|#{LIST})+/

  def initialize(root)
    @modules = Dir["#{root}/**/*.rs"].to_h { |file| [module_of(file.delete_prefix("#{root}/")), file] }
    @imports = @modules.to_h { |name, file| [name, imports_of(name, file)] }
  end

  # Each file that imports one of another room on its floor, or above. `heights` has the floors of the rooms; what is in
  # no room may import all, and be imported by all.
  def upward(heights)
    pairs = @imports.flat_map { |name, imports| imports.map { |other| [name, other] } }
    upward = pairs.select do |(room, *), (other, *)|
      room != other && heights.fetch(room, Float::INFINITY) <= heights.fetch(other, -1)
    end
    upward.map { |pair| pair.map { |name| @modules[name] } }
  end

  # Files that import each other.
  def circles = strongly_connected_components.reject(&:one?).map { |circle| circle.map { |name| @modules[name] } }

  private

  def tsort_each_node(&) = @modules.each_key(&)
  def tsort_each_child(name, &) = @imports.fetch(name).each(&)

  def module_of(path) = path.delete_suffix(".rs").split("/").reject { |part| %w[mod lib].include?(part) }

  def imports_of(name, file)
    code = File.readlines(file).map { |line| line.sub(%r{//.*}, "") }.join.gsub(/\s+as\s+\w+/, "")
    found = code.gsub(PATH).flat_map { |path| expand(path.gsub(/\s/, "")) }.filter_map { |path| resolve(name, path) }
    found.uniq - [name, name[...-1]]
  end

  # `super::{a::b, c}` is `super::a::b` and `super::c`.
  def expand(path)
    head, list = path.match(/\A(.*?)(?:::\{(.*)\})?\z/).captures
    list ? list.gsub(ITEM).flat_map { |item| expand("#{head}::#{item}") } : [head]
  end

  # The module that the path leads to.
  def resolve(name, path)
    first, *rest = path.split("::")
    base = { "crate" => [], "self" => name, "super" => name[...-1] }.fetch(first)
    supers = rest.take_while { |part| part == "super" }.size
    whole = base.take(base.size - supers) + (rest.drop(supers) - ["self"])
    whole.size.downto(0).map { |size| whole[0, size] }.find { |candidate| @modules.key?(candidate) }
  end
end

# The floors of the rooms: docs/internals/architecture.md says what each is for. A room imports none of its own floor.
HEIGHTS = {
  "ext/core/src" => { "threads" => 0, "observe" => 0, "explore" => 0, "queue" => 1, "io" => 1 },
  "ext/heddle/src" => {
    "ruby" => 0, "ticker" => 1, "scheduler" => 2, "dump" => 3, "io" => 3, "preempt" => 3, "tasks" => 3, "trace" => 3,
    "hooks" => 4
  }
}.freeze

desc "Check that the imports of the Rust code point downwards, and form no circle"
task :imports do
  HEIGHTS.each do |crate, heights|
    unknown = Dir.children(crate).reject { |child| child.end_with?(".rs") } - heights.keys
    abort "rakelib/imports.rake does not say on which floor these rooms are: #{unknown}" if unknown.any?

    imports = Imports.new(crate)
    upward = imports.upward(heights)
    abort "These files import one of a room that is not below theirs: #{upward}" if upward.any?

    circles = imports.circles
    abort "These files import each other: #{circles}" if circles.any?
  end
end
