# frozen_string_literal: true

# Ruby's own code, and libraries that load classes, call the methods of Module on every module that there is.
RSpec.describe "Heddle among Ruby's modules" do
  def modules
    name = Module.instance_method(:name)
    ObjectSpace.each_object(Module).select { |found| name.bind_call(found).to_s.start_with?("Heddle") }
  end

  it "redefines no method of Module for its own modules" do
    redefined = modules.to_h do |found|
      names = found.singleton_methods(false) & Module.instance_methods
      # Ruby itself defines some for a Data.
      [found, names.select { |name| found.method(name).source_location }]
    end
    expect(redefined.reject { |_, names| names.empty? }).to be_empty
  end

  it "adds no constant to the modules that it patches" do
    patched = [Fiber, IO, Kernel, Process, Signal, Thread::ConditionVariable, Thread::Mutex, Timeout]
    patches = patched.flat_map { |found| found.ancestors | found.singleton_class.ancestors } & modules

    expect(patches.to_h { |patch| [patch, patch.constants(false)] }.reject { |_, names| names.empty? }).to be_empty
  end

  it "leaves Kernel#trap private when it handles signals" do
    output, = run_ruby(<<~RUBY)
      require "heddle"
      Heddle.run { trap("USR1") {} }
      print Object.new.respond_to?(:trap), Signal.respond_to?(:trap)
    RUBY
    expect(output).to eq "falsetrue"
  end
end
