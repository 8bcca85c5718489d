# frozen_string_literal: true

# The garbage collector marks what a scheduler's cells hold, and borrows them for that. Where one is borrowed by code
# that calls Ruby, Ruby may collect, or wait for another Ractor's collection: the process aborts. So while a cell is
# borrowed nothing gets `ruby`, without which little of Ruby can be called.
class Borrows
  BORROW = /\.borrow(?:_mut)?\(\)/
  CALL = /\bruby\b(?!::)|\.funcall\b|\bprotect\(/
  # What gets `ruby` and does not allocate: it reads, or it is shown by it that the thread has the GVL.
  PLAIN = /\b(?:fiber::current|fiber::current_scheduler|forget_closers|forget_other_fibers|leave_waits)\(ruby\b/
  # Cells that are not marked: they belong to the backend, whose waits are calls of Ruby's.
  UNMARKED = /io\.(?:reactor|workers|names|waker)\z/
  DEPTH = { "(" => 1, "[" => 1, "{" => 1, ")" => -1, "]" => -1, "}" => -1 }.freeze

  # @param code [String] of Rust
  def initialize(code)
    @code = code.gsub(%r{//.*|"(?:\\.|[^"\\])*"}) { |text| text.gsub(/[^\n]/, " ") }
  end

  # @return [Array<Integer>] the lines of borrows during which Ruby is called
  def across_calls
    offsets = @code.to_enum(:scan, BORROW).map { Regexp.last_match.offset(0) }
    offsets.select { |from, to| across_call?(from, to) }.map { |from, _| @code[0...from].count("\n") + 1 }
  end

  private

  def across_call?(from, to)
    head = @code[statement_start(from)...from].strip
    !head.match?(UNMARKED) && @code[to...borrow_end(head, to)].gsub(PLAIN, "").match?(CALL)
  end

  def statement_start(from)
    depth = 0
    from.downto(1).find do |index|
      character = @code[index - 1]
      depth += 1 if ")]".include?(character)
      depth -= 1 if "([".include?(character)
      depth <= 0 && ";{}".include?(character)
    end || 0
  end

  # A guard that has a name lives until its block ends, or until it is dropped. Another one lives until its statement
  # ends, and with the arms of a `match` or the body of a loop.
  def borrow_end(head, from)
    name = head[/\Alet (?:mut )?(\w+) = [\w.]+\z/, 1] if @code[from] == ";"
    return block_end(from, name) if name

    statement_end(from, has_block: head.match?(/\b(?:match|(?:if|while) let|for)\b[^;]*\z/))
  end

  def block_end(from, name)
    dropped = @code.index(/\bdrop\(#{name}\)/, from) || @code.size
    depth = 0
    (from...dropped).find { |index| (depth += DEPTH.fetch(@code[index], 0)).negative? } || dropped
  end

  # The second operand of `||` and `&&`, the block of an `if`, and what follows the guard of an arm, begin after the
  # first borrow has ended.
  def statement_end(from, has_block:)
    ends, last_depth = has_block ? [[";"], 0] : [%w[; { | & =>], -1]
    depth = 0
    found = tokens(from).find do |_, token|
      next true if depth <= 0 && ends.include?(token)

      depth += DEPTH.fetch(token, 0)
      token == "}" && depth <= last_depth
    end
    found ? found.first : @code.size
  end

  def tokens(from)
    found = @code[from..].to_enum(:scan, /[(\[{}\]);|&]|=>/).map { Regexp.last_match }
    found.map { |match| [from + match.begin(0), match[0]] }
  end
end

RSpec.describe "The extension" do
  it "calls no Ruby while it borrows what the garbage collector marks" do
    found = Dir["ext/heddle/src/**/*.rs"].to_h { |file| [file, Borrows.new(File.read(file)).across_calls] }
    expect(found.reject { |_, lines| lines.empty? }).to eq({})
  end

  {
    "in a guard's block" => "let mut state = self.state.borrow_mut();\nif late {\n  raise(ruby)?;\n}",
    "in a statement" => "let record = self.state.borrow().find(fiber(ruby)?);",
    "in an arm" => "match self.state.borrow().next() {\n  Some(next) => switch(ruby, next),\n}",
    "in the body of an if let" => "if let Some(next) = self.state.borrow().next() {\n  switch(ruby, next);\n}",
    "in a loop" => "for fiber in self.state.borrow().fibers() {\n  fiber.funcall(\"raise\", ());\n}",
    "in a closure" => "let result = protect(|| self.state.borrow().record(ruby));"
  }.each do |where, code|
    it "would be found to do so #{where}" do
      expect(Borrows.new("fn act() {\n#{code}\n}\n").across_calls).to eq [2]
    end
  end

  {
    "after the guard's block" => "{\n  let state = self.state.borrow();\n  state.note();\n}\nraise(ruby)",
    "after the guard was dropped" => "let state = self.state.borrow();\ndrop(state);\nraise(ruby)",
    "after a condition" => "if self.state.borrow().is_late() || is_due(ruby) {\n  raise(ruby);\n}",
    "in an arm after a guard" => "match next {\n  true if self.state.borrow().is_late() => {}\n  _ => raise(ruby),\n}",
    "in the next statement" => "let late = self.state.borrow().late;\nraise(ruby)",
    "in a comment" => "let state = self.state.borrow();\n// ruby"
  }.each do |where, code|
    it "may do so #{where}" do
      expect(Borrows.new("fn act() {\n#{code}\n}\n").across_calls).to eq []
    end
  end
end
