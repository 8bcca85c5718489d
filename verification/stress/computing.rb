# frozen_string_literal: true

require "digest"
require "stringio"

# CPU-bound work of the kinds in which a preemption could do harm. Each method checks its result with the ledger.
module Computing
  FIBONACCI = { 14 => 377, 17 => 1597, 20 => 6765, 22 => 17_711 }.freeze
  ENTRIES = 300
  OBJECTS = 2_000
  PATTERN = /\A(?:a|aa){1,14}b\z/
  SUBJECT = "#{"a" * 18}c".freeze
  DEPTH = 400
  Point = Struct.new(:x, :y)
  # Each function returns the numbers that it gets.
  SHORT_FUNCTIONS = {
    objects: ->(numbers) { numbers.map { |number| Marshal.load(Marshal.dump(Point.new(number, number))).x } },
    roots: ->(numbers) { numbers.map { |number| Math.sqrt(number * number).round } },
    methods: ->(numbers) { numbers.map { |number| number.method(:-).unbind.bind_call(number, 0) } },
    throws: ->(numbers) { numbers.map { |number| catch(:number) { throw :number, number } } },
    errors: ->(numbers) { numbers.map { |number| KeyError.new("", receiver: number, key: nil).receiver } },
    clocks: ->(numbers) { numbers.map { |number| Process.clock_gettime(Process::CLOCK_REALTIME) && number } },
    texts: ->(numbers) { StringIO.new(numbers.join("\n")).each_line.map { |line| Integer(line) } },
    copies: ->(numbers) { numbers.map { |number| [number].dup.freeze.clone(freeze: false).instance_eval { first } } }
  }.freeze

  module_function

  def fibonacci(number)
    number < 2 ? number : fibonacci(number - 1) + fibonacci(number - 2)
  end

  def fibonacci_values(ledger, random)
    number = FIBONACCI.keys.sample(random:)
    ledger.check(:fibonacci_values, fibonacci(number), FIBONACCI[number])
  end

  def hash(ledger, _)
    table = (1..ENTRIES).to_h { |number| [number, fibonacci(6)] }
    sum = 0
    table.each { |key, value| sum += key * value / fibonacci(6) }
    ledger.check(:hash, sum, ENTRIES * (ENTRIES + 1) / 2)
    table[:later] = 1
    ledger.check(:hash, table.size, ENTRIES + 1)
  end

  def sort(ledger, random)
    numbers = (1..ENTRIES).to_a
    shuffled = numbers.shuffle(random:)
    by_block = shuffled.sort { |one, other| fibonacci(5) && (one <=> other) }
    ledger.check(:sort, by_block, numbers)
    ledger.check(:sort_by, shuffled.sort_by { |number| -number * fibonacci(5) }, numbers.reverse)
  end

  def regex(ledger, _)
    ledger.check(:regex, PATTERN.match?(SUBJECT), false)
    "left 12 right" =~ /(\d+)/
    fibonacci(14)
    ledger.check(:match, [$LAST_MATCH_INFO[1], $LAST_MATCH_INFO.pre_match], ["12", "left "])
  end

  def exceptions(ledger, _)
    steps = []
    50.times do |round|
      begin
        raise KeyError, round.to_s
      ensure
        steps << fibonacci(8)
      end
    rescue KeyError => e
      steps << e.message.to_i
      fibonacci(8)
      ledger.check(:error_info, $ERROR_INFO, e)
    end
    ledger.check(:exceptions, steps, (0...50).flat_map { |round| [21, round] })
  end

  def recursion(ledger, _)
    down = ->(depth) { depth.zero? ? 0 : 1 + down.call(depth - 1) }
    ledger.check(:recursion, down.call(DEPTH), DEPTH)
    endless = ->(depth) { 1 + endless.call(depth + 1) }
    overflown = begin
      endless.call(0)
    rescue SystemStackError
      :overflown
    end
    ledger.check(:recursion, overflown, :overflown)
  end

  def allocation(ledger, random)
    kept = Array.new(OBJECTS) { |index| index.to_s * 3 }
    case random.rand(4)
    when 0 then GC.start(full_mark: random.rand(2).zero?)
    when 1 then GC.compact if GC.respond_to?(:compact)
    end
    ledger.check(:allocation, kept.sum(&:to_i), (0...OBJECTS).sum { |index| (index.to_s * 3).to_i })
  end

  def definitions(ledger, random)
    value = random.rand(1_000)
    made = Class.new do
      define_method(:answer) { Computing.fibonacci(12) && value }
    end
    eval("made.class_eval { def twice = 2 * answer }", binding, __FILE__, __LINE__)
    ledger.check(:definitions, made.new.twice, 2 * value)
    ledger.check(:objects, ObjectSpace.each_object(made.singleton_class).include?(made), true)
  end

  # Spends nearly all time in short functions written in C, after which Ruby checks for interrupts.
  def functions(ledger, random)
    numbers = Array.new(ENTRIES) { random.rand(1 << 30) }
    SHORT_FUNCTIONS.each { |name, work| ledger.check(name, work.call(numbers), numbers) }
  end

  ALL = %i[fibonacci_values hash sort regex exceptions recursion allocation definitions functions].freeze
end
