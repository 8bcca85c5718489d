# frozen_string_literal: true

RSpec.describe "Heddle::VERSION" do
  let(:workspace) { File.read(File.expand_path("../../Cargo.toml", __dir__)) }

  it "is the version of the crates" do
    expect(workspace[/^version = "(.+)"$/, 1]).to eq(Heddle::VERSION)
  end

  it "is defined in a fresh Ruby" do
    stdout, stderr, status = run_ruby('require "heddle"; print Heddle::VERSION')

    expect([stdout, stderr, status.success?]).to eq([Heddle::VERSION, "", true])
  end
end
