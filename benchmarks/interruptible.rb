# frozen_string_literal: true

# Which of Ruby's C functions can be preempted, and which delay all other fibers until they return.
#
#   ruby -Ilib benchmarks/interruptible.rb [part of a name]      about five minutes for all
#
# Each call gets enough input to take 0.3 s or more. It then runs in a YieldingFiber, while another fiber sleeps one
# millisecond repeatedly. The longest gap between two wake-ups of the sleeper shows how long the call kept the CPU. A
# call that can't be preempted is also tried in a thread, which helps if the call releases the GVL. The figures of
# docs/internals/interruptible.md are from here.

require "csv"
require "digest"
require "erb"
require "heddle"
require "json"
require "openssl"
require "yaml"
require "zlib"

# rubocop:disable Security/Eval, Security/MarshalLoad -- all input is made here
# rubocop:disable Style/OneClassPerFile -- it is read from top to bottom

# The calls, each with its input for a given size.
module Calls
  Call = Data.define(:name, :size, :growth, :most, :prepare, :work)
  # `<=>` in Ruby, as in most programs.
  Version = Struct.new(:number) do
    include Comparable

    def <=>(other) = number <=> other.number
  end
  ALL = [] # rubocop:disable Style/MutableConstant -- it is filled below

  # Adds a call. `prepare` makes its input for a size. The first size is `size`; it is multiplied by `growth` until the
  # call takes long enough, or until it is `most`.
  def self.enter(name, prepare = ->(size) { size }, size: 10_000, growth: 2, most: Float::INFINITY, &work)
    ALL << Call.new(name, size, growth, most, prepare, work)
  end

  numbers = ->(size) { Random.new(1).then { |random| Array.new(size) { random.rand(1 << 40) } } }
  words = ->(size) { numbers.call(size).map { |number| number.to_s(36) } }
  text = ->(size) { words.call(size).join(" ") }
  bytes = ->(size) { Random.new(1).bytes(size) }
  huge = ->(size) { (1 << size) - 12_345 }
  records = ->(size) { words.call(size).map { |word| { "name" => word, "tags" => [word, 1, 2.5, nil] } } }

  enter("Array#each { }", ->(size) { Array.new(size, 1) }) { |array| array.each { nil } }
  enter("Hash#each { }", ->(size) { (1..size).to_h { |i| [i, i] } }) { |hash| hash.each { nil } }
  enter("Array#sort", words, &:sort)
  enter("Array#sort { }", numbers) { |array| array.sort { |a, b| b <=> a } }
  enter("Array#sort_by { }", words) { |array| array.sort_by { |word| -word.size } }
  enter("Array#sort, Comparable", ->(size) { numbers.call(size).map { |i| Version.new(i) } }, &:sort)
  enter("Array#max, Comparable", ->(size) { numbers.call(size).map { |i| Version.new(i) } }, &:max)
  enter("Array#sum, big Integers", ->(size) { Array.new(size, 1 << 64) }, &:sum)
  enter("Array#uniq", words, &:uniq)
  enter("Array#join", words) { |array| array.join(",") }
  enter("Array#include?", ->(size) { Array.new(size, "a" * 40) }) { |array| array.include?("#{"a" * 39}b") }
  enter("Array#flatten", ->(size) { Array.new(size) { [1, [2, [3]]] } }, &:flatten)
  enter("Array#combination(3) { }", ->(size) { (1..size).to_a }, size: 50) { |array| array.combination(3) { nil } }
  enter("Array#combination(3).to_a", ->(size) { (1..size).to_a }, size: 50) { |array| array.combination(3).to_a }
  enter("Array#pack", ->(size) { numbers.call(size) }) { |array| array.pack("w*") }
  enter("String#unpack", ->(size) { numbers.call(size).pack("w*") }) { |string| string.unpack("w*") }
  enter("Set.new", words) { |array| Set.new(array) }
  enter("Set#-", ->(size) { Set.new(words.call(size)) }) { |set| set - [1] }

  mutex = Mutex.new
  enter("Object.new, in a loop") { |size| size.times { Object.new } }
  enter("Math.sqrt, in a loop") { |size| size.times { Math.sqrt(size) } }
  enter("Mutex#synchronize { }, in a loop") { |size| size.times { mutex.synchronize { nil } } }

  # Ruby 3.3 returns Infinity for larger exponents.
  enter("Integer#**", size: 100_000, most: 20_000_000) { |exponent| 3**exponent }
  enter("Integer#pow with a modulus", ->(size) { huge.call(size) }, size: 1024) { |i| (i - 2).pow(i - 4, i) }
  enter("Integer#*", ->(size) { huge.call(size) }, size: 1_000_000) { |i| i * (i - 2) }
  enter("Integer#/", ->(size) { huge.call(size) }, size: 1_000_000) { |i| i / (i >> (i.bit_length / 2)) }
  enter("Integer#to_s", ->(size) { huge.call(size) }, size: 1_000_000, &:to_s)
  enter("String#to_i", ->(size) { "7" * size }, size: 100_000, &:to_i)
  enter("Integer.sqrt", ->(size) { huge.call(size) }, size: 1_000_000) { |i| Integer.sqrt(i) }

  enter("String#*", size: 100_000_000) { |size| "ab" * size }
  enter("String#gsub(Regexp, String)", text) { |string| string.gsub(/\d+/, "#") }
  enter("String#gsub(String, String)", text) { |string| string.gsub("1", "#") }
  enter("String#gsub { }", text) { |string| string.gsub(/\d+/) { "#" } }
  enter("String#scan", text) { |string| string.scan(/\w+/) }
  enter("String#split", text) { |string| string.split(/ +/) }
  enter("String#encode", text) { |string| string.encode("UTF-16LE") }
  enter("Regexp#match?, backtracking", ->(size) { "1," * size }, size: 15, growth: 1.05) do |string|
    /\A(?:.*?,){9}(P)\1/.match?(string)
  end
  enter("Regexp#match?, a long text", ->(size) { "ab " * size }) { |string| /[a-z]+ [a-z]+!/.match?(string) }

  enter("JSON.generate", records) { |array| JSON.generate(array) }
  enter("JSON.parse", ->(size) { JSON.generate(records.call(size)) }) { |string| JSON.parse(string) }
  enter("Marshal.dump", records) { |array| Marshal.dump(array) }
  enter("Marshal.load", ->(size) { Marshal.dump(records.call(size)) }) { |string| Marshal.load(string) }
  enter("YAML.dump", records, size: 1000) { |array| YAML.dump(array) }
  enter("YAML.load", ->(size) { YAML.dump(records.call(size)) }, size: 1000) { |string| YAML.load(string) }
  enter("CSV.parse", ->(size) { "a,b,\"c d\"\n" * size }, size: 1000) { |string| CSV.parse(string) }
  enter("CSV.generate", ->(size) { Array.new(size) { ["a", "b", "c d"] } }, size: 1000) do |rows|
    CSV.generate { |csv| rows.each { |row| csv << row } }
  end
  enter("ERB.new", ->(size) { "<b><%= 1 %></b>\n" * size }, size: 1000) { |template| ERB.new(template) }
  enter("ERB#result", ->(size) { ERB.new("<% #{size}.times do |i| %><b><%= i %></b><% end %>") }, &:result)
  enter("eval of a long program", ->(size) { "x = 1\nx += x\n" * size }, size: 1000) { |source| eval(source) }

  enter("Zlib.deflate", bytes) { |string| Zlib.deflate(string) }
  enter("Zlib.inflate", ->(size) { Zlib.deflate("ab" * size) }) { |string| Zlib.inflate(string) }
  enter("Zlib.crc32", bytes, size: 1_000_000) { |string| Zlib.crc32(string) }
  enter("Digest::SHA256", bytes, size: 1_000_000) { |string| Digest::SHA256.digest(string) }
  enter("OpenSSL::Digest", bytes, size: 1_000_000) { |string| OpenSSL::Digest::SHA512.digest(string) }
  enter("OpenSSL::Cipher", bytes, size: 1_000_000) do |string|
    OpenSSL::Cipher.new("aes-256-cbc").encrypt.tap { |cipher| cipher.key = "k" * 32 }.update(string)
  end
  enter("OpenSSL::KDF.pbkdf2_hmac", size: 100_000) do |iterations|
    OpenSSL::KDF.pbkdf2_hmac("password", salt: "salt", iterations:, length: 32, hash: "SHA256")
  end
  enter("OpenSSL::KDF.scrypt", size: 1024) do |cost|
    OpenSSL::KDF.scrypt("password", salt: "salt", N: cost, r: 8, p: 16, length: 32)
  end
  enter("OpenSSL::PKey::RSA.new", size: 4096, growth: 1.5) { |bits| OpenSSL::PKey::RSA.new(bits) }

  enter("Dir.glob", ->(size) { ["/usr/lib/**/*"] * size }, size: 1) { |patterns| Dir.glob(patterns) }
  enter("GC.start", ->(size) { Array.new(size) { Object.new } }, size: 100_000) { |_| GC.start }
end

# One call, measured in a process of its own, so that the memory of other calls does not affect it.
class Measurement
  SHORTEST = 0.3
  LONGEST = 60
  RUNS = 2
  PERIOD = 0.001
  Figures = Data.define(:length, :gap, :gap_in_thread) do
    def share = gap / length

    # "in parts": the call checks interrupts only at some places.
    def verdict
      if share < 0.1 then "yes"
      elsif share > 0.8 then "no"
      else
        "in parts"
      end
    end
  end

  def initialize(call)
    @call = call
  end

  # The figures of the run with the least disturbance, or nil if the process ended early.
  def figures
    reader, writer = IO.pipe(binmode: true)
    child = fork do
      Process.setproctitle(@call.name)
      # Ends a call that hangs.
      Process.setrlimit(:CPU, LONGEST)
      writer.write(Marshal.dump(measure))
      writer.close
      exit!(true)
    end
    writer.close
    found = reader.read
    Process.wait(child)
    found.empty? ? nil : Figures.new(*Marshal.load(found))
  end

  private

  def measure
    input = long_enough
    fiber = best { @call.work.call(input) }
    preempted = Figures.new(*fiber, nil).verdict == "yes"
    in_thread = best { Thread.new { @call.work.call(input) }.value }.last unless preempted
    [*fiber, in_thread]
  end

  def best(&work)
    Array.new(RUNS) { beside_sleeper(&work) }.min_by(&:last)
  end

  # Returns an input with which the call takes long enough.
  def long_enough
    size = @call.size
    loop do
      input = @call.prepare.call(size)
      return input if seconds { @call.work.call(input) } >= SHORTEST || size == @call.most

      size = [(size * @call.growth).ceil, @call.most].min
    end
  end

  # The duration of the work, and the longest gap between two wake-ups of the sleeper.
  def beside_sleeper(&work)
    GC.start
    length = gap = nil
    Heddle.run do
      Fiber.schedule { gap = longest_gap { length } }
      YieldingFiber.schedule { length = seconds(&work) }
    end
    [length, gap]
  end

  def longest_gap
    last = now
    longest = 0.0
    until yield
      sleep PERIOD
      woken = now
      longest = [longest, woken - last].max
      last = woken
    end
    longest
  end

  def seconds
    started = now
    yield
    now - started
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

puts "Ruby #{RUBY_VERSION}, Heddle #{Heddle::VERSION}, ticks of 1 ms", ""
puts "| call | takes | longest gap | gap/length | preempted | longest gap, in a thread |",
     "|---|---:|---:|---:|---|---:|"
Calls::ALL.each do |call|
  next unless call.name.downcase.include?(ARGV.fetch(0, "").downcase)

  figures = Measurement.new(call).figures
  if figures
    in_thread = figures.gap_in_thread&.then { |gap| format("%.1f ms", gap * 1000) }
    puts format("| `%<name>s` | %<length>.0f ms | %<gap>.1f ms | %<share>.1f %% | %<verdict>s | %<in_thread>s |",
                name: call.name, length: figures.length * 1000, gap: figures.gap * 1000, share: figures.share * 100,
                verdict: figures.verdict, in_thread:)
  else
    puts "| `#{call.name}` | no figures: the process ended early | | | | |"
  end
  $stdout.flush
end

# rubocop:enable Style/OneClassPerFile
# rubocop:enable Security/Eval, Security/MarshalLoad
