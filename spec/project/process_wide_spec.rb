# frozen_string_literal: true

require "prism"

# What a module or a class keeps in an instance variable of its own, a process has one of. A method that looks at it and
# then sets it may be interrupted in between, by another thread or a tick. Two callers then make two objects instead of
# one, or count once for two.
class ProcessWide
  GUARDS = %i[synchronize without_preemption uninterrupted].freeze
  WRITES = [Prism::InstanceVariableWriteNode, Prism::InstanceVariableOrWriteNode, Prism::InstanceVariableAndWriteNode,
            Prism::InstanceVariableOperatorWriteNode].freeze

  attr_reader :path
  # The lines of methods that look at such a variable and set it without a guard.
  attr_reader :unguarded
  # The lines of methods that say by such a variable that something is done, and do it afterwards.
  attr_reader :early

  def initialize(path)
    @path = path
    @unguarded = []
    @early = []
  end

  def search = tap { visit(Prism.parse_file(@path).value, false) }

  private

  # `of_module` tells whether `self` in methods that are defined here is a module or a class.
  def visit(node, of_module)
    case node
    when Prism::SingletonClassNode then each_child(node, true)
    when Prism::ModuleNode, Prism::ClassNode then each_child(node, false)
    when Prism::DefNode then check(node) if of_module || node.receiver
    else each_child(node, of_module)
    end
  end

  def each_child(node, of_module) = node.compact_child_nodes.each { |child| visit(child, of_module) }

  def check(method)
    uses = uses_in(method.body, false)
    looked = uses.filter_map { |kind, name| name if kind == :look }
    uses.each do |kind, name, line|
      @unguarded << "#{@path}:#{line}: #{name} is looked at and set" if kind == :set && looked.include?(name)
    end
    check_order(method, looked)
  end

  def check_order(method, looked)
    *before, _last = method.body&.child_nodes
    flags = before.grep(Prism::InstanceVariableWriteNode).select { |node| node.value.is_a?(Prism::TrueNode) }
    flags.select { |node| looked.include?(node.name) }.each do |node|
      @early << "#{@path}:#{node.location.start_line}: #{node.name} is set before what it tells is done"
    end
  end

  # Writes outside of a guard, and reads anywhere.
  def uses_in(node, guarded)
    return [] unless node

    guarded ||= node.is_a?(Prism::CallNode) && GUARDS.include?(node.name)
    own = use(node, guarded)
    node.compact_child_nodes.reduce(own) { |uses, child| uses + uses_in(child, guarded) }
  end

  def use(node, guarded)
    case node
    when Prism::InstanceVariableReadNode then [[:look, node.name]]
    when *WRITES
      set = [:set, node.name, node.location.start_line]
      reads = node.is_a?(Prism::InstanceVariableWriteNode) ? [] : [[:look, node.name]]
      guarded ? reads : [*reads, set]
    else []
    end
  end
end

RSpec.describe "What a process has one of" do
  # Where two at once do no harm, or cannot be.
  harmless = {
    "integrations/active_record.rb" => "a warning is printed twice, or a callback is added twice that warns once",
    "integrations/pool_waits.rb" => "a module that is prepended twice is there once",
    "thread_variables.rb" => "a module that is prepended twice is there once",
    "observability/dump_signal.rb" => "a handler of a signal, which may wait for nothing, and what sets it",
    "patches.rb" => "each change may be made twice, and must be made before any caller goes on",
    "patches/signal_handlers.rb" => "on the main thread, in hooks, where no fiber is preempted",
    "stalls.rb" => "equal lists; threads that have ended are joined twice",
    "traces.rb" => "the extension has reserved the recorder for one caller"
  }

  # Where no caller relies on what is done.
  unneeded = {
    "integrations/active_record.rb" => "warnings",
    "patches/signal_handlers.rb" => "in hooks of the main thread, where no other caller comes",
    "stalls.rb" => "what the end of the process does"
  }
  folder = File.expand_path("../../lib/heddle", __dir__)
  files = Dir["../**/*.rb", base: folder].to_h do |file|
    [file.delete_prefix("../heddle/"), ProcessWide.new(File.expand_path(file, folder)).search]
  end

  { unguarded: ["made twice: no method of a module looks at its variable and sets it without a guard", harmless],
    early: ["said to be made before it is", unneeded] }.each do |kind, (promise, excused)|
    it "is not #{promise}" do
      found = files.transform_values(&kind).reject { |_, lines| lines.empty? }

      expect(found.except(*excused.keys).values.flatten.join("\n")).to eq ""
      expect(excused.keys - found.keys).to eq []
    end
  end
end
