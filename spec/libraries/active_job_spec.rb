# frozen_string_literal: true

RSpec.describe "Active Job's adapter :heddle" do
  include Libraries

  let(:library) { "active_job" }
  # A `Work` performs the block `$work`; `adapter` replaces the adapter.
  let(:preamble) { <<~RUBY }
    require "active_job/queue_adapters/heddle_adapter"
    ActiveJob::Base.logger = Logger.new(nil)
    def adapter(**) = ActiveJob::Base.queue_adapter = ActiveJob::QueueAdapters::HeddleAdapter.new(**)
    class Work < ActiveJob::Base
      def perform(*arguments) = $work.call(*arguments)
    end
    ActiveJob::Base.queue_adapter = :heddle
  RUBY

  it "performs jobs at the same time on one thread, which is not the caller's" do
    expect(printed(<<~RUBY)).to eq "[1, false]\n"
      threads = []
      latch = Concurrent::CountDownLatch.new(50)
      $work = -> { threads |= [Thread.current]; latch.count_down; latch.wait(10) }
      50.times { Work.perform_later }
      ActiveJob::Base.queue_adapter.shutdown
      p [threads.size, threads.include?(Thread.main)]
    RUBY
  end

  [[{}, 3], [{ thread_variables: :shared }, 1]].each do |options, count|
    it "gives each job thread variables #{options.empty? ? "of its own" : "of the thread, with #{options}"}" do
      expect(printed(<<~RUBY)).to eq "#{[count] * 2}\n"
        adapter(**#{options})
        local = Concurrent::ThreadLocalVar.new
        latch = Concurrent::CountDownLatch.new(3)
        seen = Queue.new
        # All have set theirs when one of them looks.
        $work = lambda do |name|
          Thread.current.thread_variable_set(:job, local.value = name)
          latch.count_down
          latch.wait
          seen << [Thread.current.thread_variable_get(:job), local.value]
        end
        %w[a b c].each { |name| Work.perform_later(name) }
        ActiveJob::Base.queue_adapter.shutdown
        p Array.new(3) { seen.pop }.transpose.map { |values| values.uniq.size }
      RUBY
    end
  end

  it "keeps the jobs' states of ActiveSupport apart, without Rails" do
    expect(printed(<<~RUBY)).to eq "abc\n"
      latch = Concurrent::CountDownLatch.new(3)
      seen = Queue.new
      $work = lambda do |name|
        ActiveSupport::IsolatedExecutionState[:job] = name
        latch.count_down
        latch.wait
        seen << ActiveSupport::IsolatedExecutionState[:job]
      end
      %w[a b c].each { |name| Work.perform_later(name) }
      ActiveJob::Base.queue_adapter.shutdown
      puts Array.new(3) { seen.pop }.sort.join
    RUBY
  end

  it "names a job's fiber by the job's class and id while the job runs" do
    expect(printed(<<~RUBY)).to eq "true\n"
      $work = -> { $names = Heddle.fibers.filter_map(&:name) }
      job = Work.perform_later
      ActiveJob::Base.queue_adapter.shutdown
      p $names == ["Work \#{job.job_id}"]
    RUBY
  end

  it "waits for a job's children, before the next job of a limited queue begins" do
    expect(printed(<<~RUBY)).to eq "1\n1's child\n2\n2's child\n"
      adapter(limits: { "default" => 1 })
      $work = lambda do |number|
        gate = Queue.new
        Heddle.spin { gate.pop && sleep(0) && puts("\#{number}'s child") }
        puts number
        gate << true
      end
      [1, 2].each { |number| Work.perform_later(number) }
    RUBY
  end

  it "raises the error of a job's child within the job, where `rescue_from` sees it" do
    expect(printed(<<~RUBY)).to eq "the child's\n"
      Work.rescue_from(RuntimeError) { |error| puts error.message }
      $work = -> { Heddle.spin { raise "the child's" } }
      Work.perform_later
    RUBY
  end

  it "is no scope of a job that is performed on a thread" do
    expect(printed(<<~RUBY)).to eq "done\n"
      $work = -> { "done" }
      puts Work.perform_now
    RUBY
  end

  it "finishes jobs that run or wait in the queue before the process ends" do
    expect(printed(<<~RUBY)).to eq "0\n1\n2\n"
      adapter(fibers: 1)
      $work = ->(number) { sleep(a_moment) && puts(number) }
      3.times { |number| Work.perform_later(number) }
    RUBY
  end

  it "performs a job that a job enqueues while the process ends" do
    expect(printed(<<~RUBY)).to eq "outer\ninner\n"
      gate = Queue.new
      $work = lambda do |name|
        gate.pop if name == "outer"
        puts name
        Work.perform_later("inner") if name == "outer"
      end
      Work.perform_later("outer")
      ActiveJob::Base.queue_adapter.shutdown(wait: false)
      gate << true
    RUBY
  end

  it "tells jobs to end that run longer than `drain:`, and runs their `ensure`" do
    expect(printed(<<~RUBY)).to eq "ended\nfalse\n"
      adapter(drain: 0.01)
      begun = Queue.new
      $work = -> do
        begun << true
        sleep
      ensure
        puts "ended"
      end
      Work.perform_later
      begun.pop
      p ActiveJob::Base.queue_adapter.shutdown
    RUBY
  end

  it "performs a job with `wait_until:` at its time" do
    expect(printed(<<~RUBY)).to eq "true\n"
      done = Queue.new
      $work = -> { done << Time.now }
      due = Time.now + 0.1
      Work.set(wait_until: due).perform_later
      p done.pop(timeout: 60) >= due
    RUBY
  end

  it "says how many jobs are lost whose time has not come when the process ends" do
    expect(printed(<<~RUBY)).to eq "[ActiveJob] HeddleAdapter: 1 jobs whose time has not come are lost\n"
      ActiveJob::Base.logger = Logger.new($stdout, level: :warn, formatter: ->(*, text) { text + "\\n" })
      Work.set(wait: 60).perform_later
    RUBY
  end

  it "performs no more jobs of a queue at a time than `limits:` says, and all of the others" do
    expect(printed(<<~RUBY)).to eq "[2, 10]\n"
      adapter(limits: { reports: 2 })
      running = most = 0
      gate = Queue.new
      pairs = Concurrent::CyclicBarrier.new(2)
      $work = lambda do |queue|
        next gate.pop if queue == "other"
        running += 1
        most = [most, running].max
        pairs.wait(10)
        running -= 1
        gate << true
      end
      10.times { Work.perform_later("other") }
      10.times { Work.set(queue: :reports).perform_later("reports") }
      ActiveJob::Base.queue_adapter.shutdown
      p [most, 10 - gate.num_waiting]
    RUBY
  end

  it "performs the next job of a limited queue after one that raises or is killed" do
    expect(printed(<<~RUBY)).to eq "third\n"
      adapter(limits: { default: 1 })
      $work = lambda do |name|
        raise "an error" if name == "first"
        Fiber.current.kill if name == "second"
        puts name
      end
      %w[first second third].each { |name| Work.perform_later(name) }
    RUBY
  end

  it "lets a job wait beside one that computes" do
    expect(printed(<<~RUBY)).to eq "woken\n"
      woken = false
      $work = ->(name) { name == "computes" ? (nil until woken) : sleep(a_moment) && woken = true }
      Work.perform_later("computes")
      Work.perform_later("waits")
      ActiveJob::Base.queue_adapter.shutdown && puts("woken")
    RUBY
  end

  it "performs jobs in a forked child, which ends without those of its parent" do
    expect(printed(<<~RUBY)).to eq "child\nparent\n"
      $stdout.sync = true
      gate = Queue.new
      $work = ->(name) { gate.pop if name == "parent"; puts name }
      Work.perform_later("parent")
      Process.wait(fork { Work.perform_later("child") })
      gate << true
    RUBY
  end

  it "refuses a limit and a drain that are no numbers" do
    expect(printed(<<~RUBY)).to match(/limits\["a"\]: must be an Integer of at least 1, not 0.*drain.*not nil/m)
      [{ limits: { "a" => 0 } }, { drain: nil }].each do |options|
        adapter(**options)
      rescue ArgumentError => e
        puts e.message
      end
    RUBY
  end

  it "says how many jobs that wait are lost when `drain:` is over" do
    expect(printed(<<~RUBY)).to match(/HeddleAdapter: 1 jobs run after 0 s, .* stopped; 2 that wait are lost$/)
      adapter(limits: { default: 1 }, drain: 0)
      begun = Queue.new
      $work = -> { begun << true; sleep }
      3.times { Work.perform_later }
      begun.pop
      ActiveJob::Base.logger = Logger.new($stdout, level: :warn, formatter: ->(*, text) { text + "\\n" })
      ActiveJob::Base.queue_adapter.shutdown
      ActiveJob::Base.logger = Logger.new(nil)
    RUBY
  end
end
