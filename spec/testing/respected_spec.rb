# frozen_string_literal: true

require "heddle/testing"

# What keeps a fiber from being preempted under Heddle.run does so while a test chooses the schedule.
RSpec.describe "An explored fiber" do
  # How often two fibers were seen within a section at once, under many schedules. The block gets a section.
  def meetings(runs: 100)
    met = 0
    Heddle::Testing.explore(runs:) do
      inside = 0
      section = lambda do
        inside += 1
        met += 1 if inside > 1
        inside -= 1
      end
      Heddle.await_all(*Array.new(2) { Heddle.spin { yield section } })
    end
    met
  end

  it "is preempted between two lines" do
    expect(meetings { |section| section.call }).to be_positive
  end

  it "is not preempted in Heddle.without_preemption" do
    expect(meetings { |section| Heddle.without_preemption { section.call } }).to eq(0)
  end

  it "keeps a Mutex while it is preempted" do
    lock = Mutex.new

    expect(meetings { |section| lock.synchronize { section.call } }).to eq(0)
  end

  it "keeps a Monitor while it is preempted" do
    lock = Monitor.new

    expect(meetings { |section| lock.synchronize { section.call } }).to eq(0)
  end

  it "is not preempted in a blocking fiber" do
    expect(meetings { |section| Fiber.new(blocking: true) { section.call }.resume }).to eq(0)
  end

  it "is preempted in an Enumerator that it resumes" do
    met = meetings do |section|
      Enumerator.new { |values| values << section.call }.next
    end

    expect(met).to be_positive
  end

  # Raises in a fiber, while it may be preempted within a mask, in many schedules. The block makes that fiber from what
  # it shall do, and starts it; it returns the fiber, and the one to await. Returns for each exception whether it was
  # raised within the mask.
  def masked_when_raised
    raised = []
    Heddle::Testing.explore(runs: 50) do
      masked = false
      begun = Queue.new
      body = lambda do
        Thread.handle_interrupt(RuntimeError => :never) do
          begun << (masked = true)
          masked &&= true
          masked = false
        end
        sleep
      rescue RuntimeError
        raised << masked
      end
      fiber, awaited = yield body
      begun.pop
      fiber.raise("now")
      Heddle.await(awaited)
    end
    raised
  end

  it "keeps an exception that it masks until the end of the mask, also if it is a generator" do
    raised = masked_when_raised do |body|
      generator = Fiber.new(&body)
      [generator, Heddle.spin(background: true) { generator.resume }]
    end

    expect(raised).to eq([false] * 50)
  end

  it "keeps an exception that it masks until the end of the mask" do
    expect(masked_when_raised { |body| [Heddle.spin(&body)] * 2 }).to eq([false] * 50)
  end

  it "gets a time limit while it computes" do
    program = lambda do
      Heddle.cancel_after(0.001) { loop { nil } }
    rescue Heddle::TimeoutError
      nil
    end

    expect(Heddle::Testing.explore(runs: 2, steps: 100_000_000, &program).runs).to eq(2)
  end

  it "gets a time limit in a line that only branches" do
    values = []
    Heddle::Testing.explore(runs: 2) do
      endless = true
      values << Heddle.move_on_after(0.001, value: :ended) { nil while endless }
    end

    expect(values).to eq(%i[ended ended])
  end

  it "waits for the events of pipes" do
    program = lambda do
      reader, writer = IO.pipe
      Heddle.spin(background: true) { writer.write("text") && writer.close }
      raise "other text" unless reader.read == "text"
    ensure
      reader.close
    end

    expect(Heddle::Testing.explore(runs: 20, &program).runs).to eq(20)
  end

  it "runs in lines outside of paths: without being preempted" do
    program = lambda do
      passed = []
      Heddle.await_all(*[1, 2].map do |number|
        Heddle.spin(background: true) do
          passed << number
          passed << number
        end
      end)
      raise "preempted" unless [[1, 1, 2, 2], [2, 2, 1, 1]].include?(passed)
    end

    expect(Heddle::Testing.explore(runs: 50, paths: ["#{__dir__}/../support"], &program).runs).to eq(50)
  end

  # A switch within the list of waiters crashed Ruby: so in a process of its own.
  it "wakes all waiters of a ConditionVariable before another fiber runs" do
    output = printed(<<~RUBY)
      require "heddle/testing"
      Heddle::Testing.explore(runs: 30, clock: :virtual) do
        lock = Mutex.new
        condition = ConditionVariable.new
        fibers = [3, 2, 2].map do |limit|
          Heddle.spin(background: true) do
            lock.synchronize { condition.wait(lock, limit) }
            condition.broadcast
          end
        end
        Heddle.await_all(*fibers)
      end
      print "survived"
    RUBY

    expect(output).to eq("survived")
  end
end
