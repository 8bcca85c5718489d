# frozen_string_literal: true

require "heddle/testing"
require "monitor"

RSpec.describe "Heddle::Testing.explore with detect: :races" do
  include ExploredBank

  # @return [Heddle::Testing::Failure, nil]
  def found(runs: 50, **, &program)
    failure(program, detect: :races, runs:, **)
  end

  # The failure of a program whose two fibers each call one of the blocks with the same object.
  def found_beside(one, two = one)
    found do
      object = SharedState.new
      fibers = [one, two].map { |work| Heddle.spin { work.call(object) } }
      Heddle.await_all(*fibers)
    end
  end

  {
    "an instance variable" => [:add_one.to_proc, "@number of a"],
    "an instance variable of a method without a line of its own" => [:set.to_proc, "@number of a"],
    "an instance variable by its accessor" => [->(shared) { shared.number = 1 }, "@number of a"],
    "a class variable" => [:count_one.to_proc, "@@count of"],
    "a global variable" => [:count_one_globally.to_proc, "$heddle_races_spec, "],
    "an Array" => [->(shared) { shared.list << 1 }, "an Array"],
    "a Hash" => [->(shared) { shared.table[:a] = 1 }, "a Hash"],
    "a String" => [->(shared) { shared.text.upcase! }, "a String"]
  }.each do |what, (work, name)|
    it "finds #{what} that two fibers write" do
      expect(found_beside(work).cause).to be_a(Heddle::Testing::Race)
        .and have_attributes(message: start_with("Fibers use #{name}"))
    end
  end

  it "finds what one fiber writes and another one reads" do
    expect(found_beside(:add_one.to_proc, :read.to_proc).cause).to be_a(Heddle::Testing::Race)
  end

  {
    "a method that Ruby writes in Ruby" => ->(shared) { shared.list.first },
    "a method of Enumerable" => ->(shared) { shared.list.each_slice(2) { nil } }
  }.each do |what, reading|
    it "finds what #{what} reads" do
      expect(found_beside(reading, ->(shared) { shared.list << 1 }).cause).to be_a(Heddle::Testing::Race)
    end
  end

  it "finds what both fibers do first, in the usual schedule" do
    expect(found(runs: 1) do
      object = SharedState.new
      Heddle.await_all(Heddle.spin { object.add_one && sleep(0) }, Heddle.spin { object.add_one })
    end.cause).to be_a(Heddle::Testing::Race)
  end

  it "calls no methods of the program's classes and objects" do
    type = Class.new(BasicObject) do
      %i[equal? is_a? <= ancestors instance_method].each do |name|
        define_singleton_method(name) { |*| Kernel.raise KeyError, name.to_s }
      end

      def set
        @number = 1
      end
    end

    expect(found do
      object = type.new
      Heddle.await_all(Heddle.spin { object.set }, Heddle.spin { object.set })
    end.cause).to be_a(Heddle::Testing::Race)
  end

  it "finds it although each fiber has a lock of its own" do
    work = lambda do |shared|
      Mutex.new.synchronize { shared.add_one }
    end

    expect(found_beside(work).cause).to be_a(Heddle::Testing::Race)
  end

  it "tells the variable, both fibers and both lines" do
    line = SharedState.instance_method(:add_one).source_location.last + 1
    failure = found do
      object = SharedState.new
      one = Heddle.spin(name: "one") { object.add_one }
      two = Heddle.spin(name: "two") { object.add_one }
      Heddle.await_all(one, two)
    end

    place = /(?:reads|writes) it at shared_state.rb:#{line}: @number \+= 1\s+/
    expect(without_folders(failure.cause.message.lines.drop(1).sort.join)).to match(/one #{place}two #{place}/)
  end

  it "replays by its schedule" do
    program = lambda do
      list = []
      Heddle.await_all(Heddle.spin { list << 1 }, Heddle.spin { list << 2 })
    end
    schedule = failure(program, detect: :races, runs: 50).schedule

    expect(failure(program, detect: [:races], schedule:).cause).to be_a(Heddle::Testing::Race)
  end

  it "finds nothing where the program fails otherwise: the error is told" do
    expect(found { raise KeyError, "lost" }.cause).to be_a(KeyError)
  end

  describe "finds nothing" do
    {
      "what a Mutex protects" => [:add_one_with_lock.to_proc],
      "what a Mutex protects in one line" => [:add_one_with_lock_in_a_line.to_proc],
      "what a Mutex protects by lock and try_lock" => [
        lambda do |shared|
          shared.lock.lock
          shared.add_one
          shared.lock.unlock
        end,
        lambda do |shared|
          next unless shared.lock.try_lock

          shared.add_one
          shared.lock.unlock
        end
      ],
      "what both read" => [:read.to_proc],
      "what a block leaves" => [:leave.to_proc],
      "what is made within a Mutex, and read without it" => [->(shared) { shared.made_with_lock.first }],
      "what runs without preemption" => [->(shared) { Heddle.without_preemption { shared.add_one } }],
      "what each has of its own" => [->(_) { [1] << 2 }]
    }.each do |what, works|
      it "in #{what}" do
        expect(found_beside(*works)).to be_nil
      end
    end

    # The programs change `shared` in a fiber, and again in another one.
    {
      "a Queue" => lambda do |shared|
        queue = Queue.new
        [-> { shared.add_one && queue.push(1) }, -> { queue.pop && shared.add_one }]
      end,
      "a Queue whose value is assigned" => lambda do |shared|
        queue = Queue.new
        [-> { shared.add_one && queue.push(1) }, -> { shared.receive(queue) }]
      end,
      "the end of a Queue" => lambda do |shared|
        queue = Queue.new
        [-> { shared.add_one && queue.close }, -> { queue.pop || shared.add_one }]
      end,
      "a SizedQueue with a free place" => lambda do |shared|
        queue = SizedQueue.new(1)
        [-> { 2.times { queue.push(1) } && shared.add_one }, -> { shared.add_one && queue.pop }]
      end,
      "a ConditionVariable" => lambda do |shared|
        lock = Mutex.new
        condition = ConditionVariable.new
        is_done = false
        [lambda do
          lock.synchronize do
            shared.add_one
            is_done = true
            condition.signal
          end
        end, lambda do
          lock.synchronize do
            condition.wait(lock) until is_done
          end
          shared.add_one
        end]
      end,
      "a condition of a Monitor" => lambda do |shared|
        monitor = Monitor.new
        condition = monitor.new_cond
        is_done = false
        [lambda do
          monitor.synchronize do
            shared.add_one
            is_done = true
            condition.signal
          end
        end, -> { monitor.synchronize { condition.wait_until { is_done } } && shared.add_one }]
      end,
      "a semaphore of Heddle's" => lambda do |shared|
        semaphore = Heddle::Semaphore.new(1)
        [-> { semaphore.acquire { shared.add_one } }, -> { semaphore.acquire { shared.add_one } }]
      end,
      "a Queue to which an Enumerator pushes" => lambda do |shared|
        queue = Queue.new
        numbers = Enumerator.new { |yielder| queue.push(1) && yielder.yield(1) }
        [-> { shared.add_one && numbers.next }, -> { queue.pop && shared.add_one }]
      end,
      "a pipe" => lambda do |shared|
        reader, writer = IO.pipe
        [-> { shared.add_one && writer.close }, -> { reader.read && shared.add_one }]
      end
    }.each do |what, programs|
      it "where #{what} orders two fibers" do
        expect(found { Heddle.await_all(*programs.call(SharedState.new).map { |work| Heddle.spin(&work) }) }).to be_nil
      end
    end

    it "where a fiber awaits another one, and where one starts another one" do
      expect(found do
        object = SharedState.new
        object.add_one
        one = Heddle.spin { object.add_one }
        two = Heddle.spin { one.await && object.add_one }
        two.await
        object.add_one
      end).to be_nil
    end

    it "in the fiber of an Enumerator, and in one that the fiber resumes" do
      expect(found do
        object = SharedState.new
        numbers = Enumerator.new { |yielder| object.add_one && yielder.yield(1) }
        Heddle.spin { numbers.next && Fiber.new { object.add_one }.resume && object.add_one }.await
      end).to be_nil
    end

    it "where an object of concurrent-ruby orders two fibers, and in an Array of it" do
      stub_const("Concurrent", Module.new)
      stub_const("Concurrent::Array", Class.new(Array))
      map = stub_const("Concurrent::Map", Class.new { define_method(:done) { |is_done = nil| @done ||= is_done } })
      expect(found do
        object = SharedState.new
        done = map.new
        list = Concurrent::Array.new
        Heddle.await_all(Heddle.spin { object.add_one && list.push(1) && done.done(true) },
                         Heddle.spin { list.push(2) && done.done && object.add_one })
      end).to be_nil
    end

    it "where an Enumerator goes on with what a Mutex protects" do
      expect(found do
        object = SharedState.new
        work = lambda do
          object.lock.synchronize do
            Enumerator.new { |yielder| object.add_one && yielder.yield(1) }.next
          end
        end
        Heddle.await_all(Heddle.spin(&work), Heddle.spin(&work))
      end).to be_nil
    end

    it "in what a line does not come to, as it has been left by an error" do
      expect(found do
        object = SharedState.new
        queue = Queue.new
        waiting = Heddle.spin { object.receive(queue) }
        writing = Heddle.spin { object.add_one }
        sleep(0)
        waiting.stop
        writing.await
      end).to be_nil
    end

    it "where a variable is made once, and found by a branch", :regression do
      expect(found(runs: 1) do
        object = SharedState.new
        object.made
        Heddle.await_all(Heddle.spin { object.made }, Heddle.spin { object.made })
      end).to be_nil
    end
  end
end
