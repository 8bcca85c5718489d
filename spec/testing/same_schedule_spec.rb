# frozen_string_literal: true

require "heddle/testing"
require "monitor"
require "timeout"
require "zlib"

# Each example compares with what was recorded once. So the versions of Ruby and the backends agree with each other.
RSpec.describe "A seed of Heddle::Testing" do
  # A fiber that computes, locks, waits for another, yields and uses an Enumerator.
  def weave(name, noted, lock, queue)
    noted << name
    lock.synchronize do
      noted << name
      queue << name
    end
    numbers = Enumerator.new do |values|
      values << 1
      values << 2
    end
    noted << "#{name}#{numbers.next}"
    Heddle.snooze
    noted << "#{name}#{numbers.next}"
    noted << queue.pop.upcase
    [3, 1, 2].sort_by { |number| -number }.each { |number| noted << number }
  end

  # @return [String] what three fibers note
  def notes(**)
    noted = []
    Heddle::Testing.explore(**) do
      noted.clear
      lock = Mutex.new
      queue = Queue.new
      Heddle.await_all(*%w[a b c].map { |name| Heddle.spin { weave(name, noted, lock, queue) } })
    end
    noted.join
  end

  {
    { seed: 1 } => "aabcbca1c1b1b2a2c2BCA323321121",
    { seed: 2 } => "aabccbb1a1b2c1Aa2Cc23B21323211",
    { seed: 42 } => "bbab1accc1a1c2B321b2Aa2C321321",
    { seed: 99 } => "aaa1bbb1b2Acca2B321c1c2C321321",
    { seed: 1, strategy: :pct } => "ccc1bbb1aaa1c2C321b2B321a2A321",
    { seed: 3, strategy: :pct, depth: 5 } => "bbcacc1aa1b1c2B321a2C321b2A321",
    { schedule: "2.3>4,4.2>3" } => "bbb1aaa1ccc1b2B321a2A321c2C321"
  }.each do |options, expected|
    it "gives the recorded schedule with #{options}" do
      expect(notes(**options)).to eq(expected)
    end
  end

  it "gives the same schedule where Queues note their origins" do
    before, after = in_child do
      [notes(seed: 1), Heddle.const_get(:QueueOrigins).note_from_now_on && notes(seed: 1)]
    end

    expect(after).to eq before
  end

  # What each kind of wait and of fiber does to the order of three fibers.
  def wait_for_everything(name, noted, resources)
    lock, monitor, condition, queues, pipe = resources
    monitor.synchronize { monitor.synchronize { noted << "#{name}m" } }
    lock.synchronize { condition.wait(lock, 0.3) }
    condition.broadcast
    noted << "#{name}c"
    pass_on(name, noted, queues, pipe)
    noted << Timeout.timeout(0.5) { sleep(2) }.to_s
  rescue Timeout::Error
    noted << "#{name}t" << Queue.new.pop(timeout: 0.2).inspect
    noted << Heddle.run { Heddle.await(Heddle.spin { "#{name}n" }) }
    use_fibers(name, noted)
  end

  def pass_on(name, noted, queues, pipe)
    queues.each do |queue|
      queue.push(name)
      noted << queue.pop
    end
    pipe.last.write(name)
    noted << pipe.first.read(1)
  end

  def use_fibers(name, noted)
    fiber = Fiber.new do |value|
      noted << value
      Fiber.yield("#{name}y").tap { |given| noted << given }
    end
    noted << fiber.resume("#{name}1")
    noted << fiber.resume("#{name}2")
    noted << (name.to_sym.name + :b.id2name)
    noted << name.each_char.with_index.map { |character, index| "#{character}#{index}" }.join
  end

  # @return [Integer] a checksum of what the fibers note
  def checksum(**)
    noted = []
    Heddle::Testing.explore(clock: :virtual, **) do
      noted.clear
      pipe = IO.pipe
      queues = [SizedQueue.new(1), SizedQueue.new(3)]
      resources = [Mutex.new, Monitor.new, ConditionVariable.new, queues, pipe]
      Heddle.await_all(*%w[a b c].map { |name| Heddle.spin { wait_for_everything(name, noted, resources) } })
    ensure
      pipe&.each(&:close)
    end
    Zlib.crc32(noted.join)
  end

  {
    { seed: 1 } => 2_224_893_589,
    { seed: 5 } => 990_887_573,
    { seed: 42 } => 1_253_751_408,
    { seed: 7, strategy: :pct } => 864_876_394
  }.each do |options, expected|
    it "gives the recorded schedule of locks, limits, pipes and fibers within fibers with #{options}" do
      expect(checksum(**options)).to eq(expected)
    end
  end

  # @return [Integer] how many points a run of the line has
  def points_of(line)
    Heddle::Testing.explore(seed: 0) { line.call([1, "x", nil], nil, { key: 1 }) }.steps
  end

  # How many points a line has besides its begin and end: ends of methods and blocks, lines of blocks, and the first
  # branch that is taken after the line has begun and after each end of a method in C.
  {
    "||" => [1, ->(list, none, _) { list || none }],
    "|| of nil" => [0, ->(list, none, _) { none || list }],
    "&&" => [1, ->(list, none, _) { none && list }],
    "||=" => [0, ->(list, none, _) { (none ||= list) && none }],
    "&&=" => [1, ->(list, none, _) { (none &&= list) || none }],
    "&." => [1, ->(_, none, _) { none&.size }],
    "? :" => [0, ->(list, _, _) { list ? 1 : 2 }],
    "? : of nil" => [1, ->(_, none, _) { none ? 1 : 2 }],
    "if after a statement" => [1, ->(list, none, _) { list << 1 if none }],
    "unless after a statement" => [1, ->(list, _, _) { list << 1 unless list.empty? }],
    "while after a statement" => [5, ->(list, _, _) { list.shift while list[0] }],
    "case" => [0, ->(list, _, _) { case list.size when 1 then 1 when 3 then 2 else 3 end }],
    "case of Strings" => [0, ->(list, _, _) { case list[1] when "y", "x" then 1 else 2 end }],
    "case of classes" => [1, ->(list, _, _) { case list when Integer then 1 when Array then 2 end }],
    "pattern of an Array" => [6, ->(list, _, _) { case list; in [Integer => first, *] then first end }],
    "pattern of a Hash" => [4, ->(_, _, table) { table in { key: Integer } }],
    "nil?" => [1, ->(list, _, _) { list.nil? ? 1 : 2 }],
    "!" => [0, ->(list, none, _) { !none && list }],
    "==" => [2, ->(list, _, _) { list == 1 ? 1 : 2 }],
    "include? of an Array" => [2, ->(list, _, _) { list.include?("y") ? 1 : 2 }],
    "include? of what is written" => [1, ->(list, _, _) { [1, 2].include?(list.size) ? 1 : 2 }],
    "min of what is written" => [1, ->(list, _, _) { [list.size, 9].min == 9 ? 1 : 2 }],
    "the end of a method that calls others" => [8, ->(list, none, _) { list.to_s && none && list }],
    "the end of a method that is a point" => [1, ->(list, none, table) { table.key?(:none) || none || list }],
    "a block" => [8, ->(list, _, _) { list.each { |entry| entry || 1 } }],
    "an empty block" => [0, ->(_, none, _) { [].each { |entry| entry || 1 } && none && 1 }],
    "next" => [7, ->(list, _, _) { list.each { |entry| next if entry } }],
    "break" => [2, ->(list, _, _) { list.map { |entry| break 1 if entry } }],
    "times" => [6, ->(list, none, _) { 2.times { |number| list[number] ||= none } }],
    "loop" => [11, ->(list, _, _) { loop { list.shift || break } }],
    "rescue" => [1, ->(list, none, _) { Integer("x", exception: true) rescue list && none }], # rubocop:disable Style/RescueModifier
    "text" => [8, ->(list, none, _) { "#{none ? 1 : 2} #{list || 1}" }],
    "a Regexp" => [0, ->(list, _, _) { list[1] =~ /x/ ? 1 : 2 }],
    "defined?" => [1, ->(_, _, _) { defined?(Nothing) ? 1 : 2 }],
    "Mutex.new" => [1, ->(_, none, _) { Mutex.new && none && 1 }],
    "ConditionVariable.new" => [1, ->(_, none, _) { ConditionVariable.new && none && 1 }],
    "Hash.new" => [1, ->(_, none, _) { Hash.new && none && 1 }], # rubocop:disable Style/EmptyLiteral -- this is what is tested
    "Queue#empty?" => [2, ->(_, none, _) { Queue.new.empty? && none && 1 }]
  }.each do |name, (count, line)|
    it "passes #{count} points within a line with #{name}" do
      expect(points_of(line) - points_of(->(list, *) { list })).to eq(count)
    end
  end
end
