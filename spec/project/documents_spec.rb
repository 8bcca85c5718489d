# frozen_string_literal: true

require "tmpdir"

# The Ruby code in the documents for users. Every block is a program that runs as pasted. Where a fragment is better to
# read, a comment before the block, which the pages do not show, has the rest of the program; the line `…` in it stands
# for the block:
#
#   <!-- around
#   require "heddle"
#   Heddle.run do
#   …
#   end
#   -->
#
# A block of plain text right after a program is what it prints, where … stands for anything.
RSpec.describe "The document" do
  include Libraries

  fence = /(?:^<!-- around\n(?<around>.*?)^-->\n\n?)?^```ruby\n(?<code>.*?)^```\n(?:\n```text\n(?<output>.*?)^```\n)?/m

  def matching(output)
    /\A#{output.split("…", -1).map { |part| Regexp.escape(part) }.join(".*?")}\z/m
  end

  # Skips a program that asks for a backend which is unavailable here.
  def expect_backend(code)
    Heddle::Scheduler.new(backend: :io_uring) if code.include?("backend: :io_uring")
  rescue Heddle::BackendUnavailable => e
    skip e.message
  end

  # Runs the program in a folder of its own, as RSpec would read the options of this project.
  def run_elsewhere(program)
    Dir.mktmpdir { |folder| run_ruby("Dir.chdir(#{folder.dump})\n#{program}") }
  end

  Dir.glob(%w[README.md CHANGELOG.md docs/*.md], base: ExamplePrograms::ROOT).each do |document|
    text = File.read(File.join(ExamplePrograms::ROOT, document), encoding: Encoding::UTF_8)

    it "#{document} has no block of Ruby that this file does not see" do
      expect(text.scan(fence).size).to eq text.scan(/^ *```ruby/).size
    end

    text.scan(fence) do |around, code, output|
      line = Regexp.last_match.pre_match.count("\n") + around.to_s.count("\n") + 2
      program = around ? around.sub(/^ *…$/) { code } : code

      it "#{document} has a program in line #{line} that does what it says" do
        expect_backend(program)
        printed, errors, status = run_elsewhere(program)
        library = errors[/cannot load such file -- ((?!heddle)[\w-]+)/, 1]
        skip_or_fail_without(library) if library
        expect([errors, status.success?]).to eq(["", true])
        expect(printed).to match(matching(output)) if output
      end
    end
  end
end
