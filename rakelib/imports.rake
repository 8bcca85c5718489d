# frozen_string_literal: true

require "tsort"

# Which files of a crate import which. A file does not count as importing its own module's parent, whose type it may
# have an `impl` of.
class Imports
  include TSort

  PATH = /\b(?:crate|self|super)(?:::(?:\w+|\{(?:[^{}]|\{[^{}]*\})*\}))+/

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
    code = File.readlines(file).grep_v(%r{\A\s*//}).join
    found = code.scan(PATH).flat_map { |path| expand(path) }.filter_map { |path| resolve(name, path) }
    found.uniq.reject { |other| name[0, other.size] == other }
  end

  # `super::{a::b, c}` is `super::a::b` and `super::c`.
  def expand(path)
    head, list = path.delete(" \n").match(/\A(.*?)(?:::\{(.*)\})?\z/).captures
    return [head] unless list

    list.scan(/(?:[^,{}]|\{[^{}]*\})+/).flat_map { |item| expand("#{head}::#{item}") }
  end

  # The module that the path leads to.
  def resolve(name, path)
    first, *rest = path.split("::")
    base = { "crate" => [], "self" => name, "super" => name[...-1] }.fetch(first)
    whole = base + rest
    whole.size.downto(0).map { |size| whole[0, size] }.find { |candidate| @modules.key?(candidate) }
  end
end

# The floors of the extension's rooms: docs/internals/architecture.md says what each is for.
HEIGHTS = {
  "ruby" => 0, "ticker" => 1, "scheduler" => 2, "dump" => 3, "io" => 3, "preempt" => 3, "tasks" => 3, "trace" => 3,
  "hooks" => 4
}.freeze

desc "Check that the Rust code's imports point downwards, and form no circle"
task :imports do
  upward = Imports.new("ext/heddle/src").upward(HEIGHTS)
  abort "These files import one of a room that is not below theirs: #{upward}" if upward.any?

  circles = %w[ext/core/src ext/heddle/src].flat_map { |root| Imports.new(root).circles }
  abort "These files import each other: #{circles}" if circles.any?
end
