# frozen_string_literal: true

require "tmpdir"

# The Ruby code in the documents for users. A block that requires "heddle" (or its core_ext) is a program: it must run,
# and a block of plain text right after it is what it prints, where … stands for anything. Other blocks are fragments,
# and must be correct Ruby.
RSpec.describe "The document" do
  include Libraries

  fence = /^```ruby\n(?<code>.*?)^```\n(?:\n```text\n(?<output>.*?)^```\n)?/m

  def matching(output)
    /\A#{output.split("…", -1).map { |part| Regexp.escape(part) }.join(".*?")}\z/m
  end

  # Skips a program that asks for a backend which is unavailable here.
  def expect_backend(code)
    Heddle::Scheduler.new(backend: :io_uring) if code.include?("backend: :io_uring")
  rescue Heddle::BackendUnavailable => e
    skip e.message
  end

  Dir.glob(%w[README.md docs/*.md], base: ExamplePrograms::ROOT).each do |document|
    text = File.read(File.join(ExamplePrograms::ROOT, document), encoding: Encoding::UTF_8)
    text.scan(fence) do |code, output|
      line = Regexp.last_match.pre_match.count("\n") + 2
      unless code.match?(%r{^require "heddle(/core_ext)?"$})
        it "#{document} has correct Ruby in line #{line}" do
          expect { RubyVM::InstructionSequence.compile("def example = begin\n#{code}\nend") }.not_to raise_error
        end

        next
      end

      it "#{document} has a program in line #{line} that does what it says" do
        expect_backend(code)
        # Elsewhere, because RSpec would read the options of this project.
        printed, errors, status = run_ruby("Dir.chdir(#{Dir.tmpdir.dump})\n#{code}")
        library = errors[/cannot load such file -- ((?!heddle)[\w-]+)/, 1]
        skip_or_fail_without(library) if library
        expect([errors, status.success?]).to eq(["", true])
        expect(printed).to match(matching(output)) if output
      end
    end
  end
end
