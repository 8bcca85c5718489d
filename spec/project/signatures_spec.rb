# frozen_string_literal: true

require "json"

RSpec.describe "The signatures in sig/" do
  include Libraries

  let(:library) { "rbs" }
  folder = File.expand_path("../../sig", __dir__)

  let(:differences) do
    JSON.parse(printed("load #{File.expand_path("../support/signatures/differences.rb", __dir__).dump}"))
  end

  it "are valid" do
    output = printed(<<~RUBY)
      require "rbs/cli"
      RBS::CLI.new(stdout: $stdout, stderr: $stdout).run(["-I", #{folder.dump}, "-r", "timeout", "validate"])
      print "valid"
    RUBY
    expect(output).to end_with("valid")
  end

  it "declare every public method that is not marked as private" do
    expect(differences.fetch("unsigned")).to be_empty
  end

  it "declare only methods that there are" do
    # Heddle defines this hook where Ruby can decline an operation.
    hooks = RUBY_VERSION.start_with?("3.4.") ? ["Heddle::Scheduler#blocking_operation_wait"] : []

    expect(differences.fetch("without_method") - hooks).to be_empty
  end

  it "declare the required arguments and keywords that the methods take" do
    expect(differences.fetch("other_arguments")).to be_empty
  end
end
