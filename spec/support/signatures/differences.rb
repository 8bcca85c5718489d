# frozen_string_literal: true

require "json"
require "rbs"
require "heddle/core_ext"
begin
  require "heddle/executor"
rescue LoadError
  nil # concurrent-ruby is not installed
end
require "heddle/offload"
require "heddle/testing"
require "heddle/web"

# Compares the signatures in sig/ with Heddle's public interface. spec/project/signatures_spec.rb runs this file in a
# Ruby of its own, because RBS is no part of the bundle. It prints what differs as JSON.
class Signatures
  FOLDER = File.expand_path("../../../sig", __dir__)

  # What heddle/core_ext adds to Ruby's own classes.
  EXTENSIONS = {
    ["::Fiber", :build_instance] => :FiberMethods,
    ["::Fiber", :build_singleton] => :FiberClassMethods,
    ["::Kernel", :build_instance] => :KernelMethods
  }.freeze

  # A method of Heddle, with its signature, which is nil if there is none.
  Pair = Struct.new(:label, :definition, :signature) do
    # Whether the comment above the method says that programs must not call it.
    def marked_as_private?
      file, line = definition.source_location
      return false unless file

      comment = File.readlines(file).first(line - 1).reverse.take_while { |text| text.strip.start_with?("#") }
      comment.any? { |text| text.include?("@api private") }
    end

    # Methods in Rust do not say what they take.
    def comparable? = signature && definition.source_location

    # The number of required arguments, and the keywords.
    def declared
      functions = signature.method_types.map(&:type)
      keywords = functions.flat_map { |function| [*function.required_keywords.keys, *function.optional_keywords.keys] }
      [functions.map { |function| function.required_positionals.size }.min, keywords.uniq.sort]
    end

    def taken
      required, keywords = declared
      # What a method takes as `*` and `**` can be anything.
      required = names(:req).size unless kind?(:rest)
      keywords = (names(:key, :keyreq) | (kind?(:keyrest) ? keywords : [])).sort
      [required, keywords]
    end

    private

    def kind?(kind) = definition.parameters.any? { |found, _| found == kind }

    def names(*kinds) = definition.parameters.filter_map { |kind, name| name if kinds.include?(kind) }
  end

  def initialize
    loader = RBS::EnvironmentLoader.new
    loader.add(path: Pathname(FOLDER))
    loader.add(library: "timeout", version: nil)
    @builder = RBS::DefinitionBuilder.new(env: RBS::Environment.from_loader(loader).resolve_type_names)
  end

  def differences
    {
      unsigned: pairs.reject { |pair| pair.signature || pair.marked_as_private? }.map(&:label),
      without_method: classes.flat_map { |type| declared_only(type) },
      other_arguments: pairs.select(&:comparable?).filter_map { |pair| other_arguments(pair) }
    }
  end

  private

  def pairs
    @pairs ||= classes.flat_map { |type| pairs_of(type) } + extension_pairs
  end

  # Heddle, and what a program can reach by its constants.
  def classes(type = Heddle)
    inner = type.constants(false).map { |name| type.const_get(name) }.grep(Module)
    [type, *inner.select { |found| found.name.start_with?("#{type.name}::") }.flat_map { |found| classes(found) }]
  end

  def pairs_of(type)
    pair("::#{type}", :build_instance, type.public_instance_methods(false)) { |name| type.instance_method(name) } +
      pair("::#{type}", :build_singleton, type.singleton_methods(false)) { |name| type.method(name) }
  end

  def extension_pairs
    EXTENSIONS.flat_map do |(path, kind), name|
      # The constant is private.
      added = Heddle.module_eval(name.to_s)
      pair(path, kind, added.instance_methods + added.private_instance_methods(false)) { added.instance_method(_1) }
    end
  end

  def pair(path, kind, names)
    signatures = own(path, kind)
    separator = kind == :build_singleton ? "." : "#"
    names.map { |name| Pair.new([path, separator, name].join, yield(name), signatures[name]) }
  end

  def other_arguments(pair)
    "#{pair.label} takes #{pair.taken}, and declares #{pair.declared}" unless pair.declared == pair.taken
  end

  def declared_only(type)
    instance = own("::#{type}", :build_instance).keys.reject { |name| type.method_defined?(name) }
    singleton = own("::#{type}", :build_singleton).keys.reject { |name| type.respond_to?(name) }
    (instance - [:initialize]).map { |name| "#{type}##{name}" } + singleton.map { |name| "#{type}.#{name}" }
  end

  # The signatures of the methods that the class itself has, not its ancestors.
  def own(path, kind)
    type = RBS::Namespace.parse("#{path}::").to_type_name
    @builder.public_send(kind, type).methods.select { |_, method| method.defs.last.implemented_in == type }
  end
end

puts JSON.generate(Signatures.new.differences)
