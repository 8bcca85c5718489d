# frozen_string_literal: true

RSpec.describe "The gem" do
  root = File.expand_path("../..", __dir__)

  let(:files) { Dir.chdir(root) { Gem::Specification.load("scheduler.gemspec") }.files }

  # The files of the repository in these folders. An unpacked archive has none; there the examples are skipped.
  define_method(:tracked) do |*folders|
    list = IO.popen(["git", "-C", root, "ls-files", "-z", *folders], err: File::NULL, &:read).split("\0")
    list.empty? ? skip("this is no Git checkout") : list
  end

  it "contains the library, its signatures, the extension's sources without tests, and the documents" do
    needed = tracked("lib", "sig", "ext", "docs").grep_v(%r{\Aext/.*/tests/})

    expect(files).to include(*needed)
  end

  it "contains what Cargo needs to build the tested versions of the crates" do
    expect(files).to include("Cargo.toml", "Cargo.lock", "ext/heddle/extconf.rb", "ext/heddle/build.rs")
  end

  it "contains no file that is not in the repository" do
    expect(files - tracked).to be_empty
  end

  it "contains no folder but lib, sig, ext and docs" do
    folders = files.grep(%r{/}).map { |file| file[%r{\A[^/]+}] }

    expect(folders.uniq).to contain_exactly("lib", "sig", "ext", "docs")
  end

  it "has a section of its version in the changelog" do
    headings = File.readlines(File.join(root, "CHANGELOG.md")).grep(/^## /)

    expect(headings).to include(/\A## \[#{Regexp.escape(Heddle::VERSION)}\] - (\d{4}-\d\d-\d\d|unreleased)$/)
  end

  it "contains no test" do
    expect(files.grep(%r{(\A|/)(spec|tests?)/})).to be_empty
  end
end
