# frozen_string_literal: true

RSpec.describe "The Ruby code of Heddle" do
  # `defined?(A::B)` evaluates A, within a `rescue` of everything. A signal that Ruby raises there is lost.
  guard = "defined guard in"

  Dir["lib/**/*.rb"].each do |file|
    it "evaluates nothing within `defined?`, which would swallow an interrupt: #{file}" do
      expect(RubyVM::InstructionSequence.compile_file(file).disasm).not_to include(guard)
    end
  end

  it "would be found to do so" do
    code = RubyVM::InstructionSequence.compile("defined?(A::B) || defined?(A.b)")
    expect(code.disasm.scan(guard).size).to eq 2
  end
end
