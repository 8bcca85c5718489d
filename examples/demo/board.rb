# frozen_string_literal: true

# Prints a table, in colour on a terminal.
class Board
  BAR = 40

  def title(text)
    puts "", style(1, text)
  end

  def row(name, value, remark = nil)
    puts "  #{name.ljust(22)} #{style(36, value.rjust(9))}  #{style(2, remark.to_s)}".rstrip
  end

  def seconds(name, seconds, longest, remark = nil)
    bar = "#" * (BAR * seconds / longest).ceil
    row(name, format("%.2f s", seconds), [bar, remark].compact.join("  "))
  end

  # Two figures side by side.
  def compare(name, without, with)
    puts "  #{name.ljust(22)} #{style(36, without.rjust(9))} #{style(36, with.rjust(9))}"
  end

  private

  def style(code, text)
    $stdout.tty? && !text.empty? ? "\e[#{code}m#{text}\e[0m" : text
  end
end
