# frozen_string_literal: true

# docs/internals/architecture.md, 'The end of a process', lists these threads.
RSpec.describe "The end of a process" do
  # Forks a child for each place in which it starts the work and each way in which it ends, several times. Prints how
  # many children ended as they should, and how all others ended.
  program = <<~'RUBY'
    parent = Process.pid
    place = nil
    begin_in = ->(here) { start if Process.pid != parent && place == here }
    at_exit { begin_in.call(:early_handler) }
    require "heddle"
    at_exit { begin_in.call(:late_handler) }
    # Ruby takes its time to free it all.
    objects = Array.new(50_000) { Object.new }
    ends = {
      -> {} => 0, -> { exit!(2) } => 2, -> { exit(3) } => 3, -> { abort } => 1, -> { raise "uncaught" } => 1
    }
    cases = %i[block early_handler late_handler].product(ends.keys) * 2
    children = cases.map do |chosen, finish|
      fork do
        $stderr.reopen(File::NULL)
        place = chosen
        begin_in.call(:block)
        finish.call
      end
    end
    outcomes = cases.zip(children).map do |(chosen, finish), child|
      status = Process.wait2(child).last
      status.exitstatus == ends[finish] ? :expected : [chosen, ends[finish], status]
    end
    outcomes.tally.each { |outcome, count| puts "#{outcome}: #{count}" }
  RUBY

  # What each of them starts, it leaves.
  {
    "the ticker of a YieldingFiber without a scheduler" => <<~RUBY,
      $fiber = YieldingFiber.new { loop { Integer.sqrt(2) } }
      $fiber.resume
    RUBY
    "the ticker of a scheduler, a native thread" => <<~RUBY,
      Fiber.set_scheduler(Heddle::Scheduler.new(ticker: :timerfd))
      Fiber.schedule { preempt_a_fiber }
    RUBY
    "the ticker of a scheduler, a signal" => <<~RUBY,
      Fiber.set_scheduler(Heddle::Scheduler.new(ticker: :signal))
      Fiber.schedule { preempt_a_fiber }
    RUBY
    "the ticker of another thread's scheduler" => <<~RUBY,
      ready = Queue.new
      Thread.new { Heddle.run { YieldingFiber.schedule { loop { Integer.sqrt(2) } } && ready.push(true) } }
      ready.pop
    RUBY
    "the ticker of a Ractor's scheduler" => <<~RUBY,
      Ractor.new { Heddle.run { YieldingFiber.schedule { 10_000.times { Integer.sqrt(2) } } } }
    RUBY
    "the watch for stalls" => <<~RUBY,
      Fiber.set_scheduler(Heddle::Scheduler.new(stall_after: 0.01))
      Fiber.schedule { compute_for(0.015) }
    RUBY
    "the threads for files and host names" => <<~RUBY,
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Fiber.schedule { Addrinfo.getaddrinfo("localhost", 80) && File.read("/etc/hosts") }
    RUBY
    "the thread that wakes a thread for one that closes an IO" => <<~RUBY
      reader, $writer = IO.pipe
      parked = Queue.new
      Thread.new do
        Heddle.run do
          Fiber.schedule { reader.read }
          sleep(a_moment)
          Fiber.new(blocking: true) { parked.push(true) && sleep }.resume
        end
      end
      parked.pop
      closer = Thread.new { reader.close }
      Thread.pass until closer.stop?
    RUBY
  }.each do |thread, work|
    it "comes after that of #{thread}, wherever it was started and however the process ends" do
      start = "require #{Computing::PATH.dump}\ninclude Computing\ndef start\n#{work}end\n"

      expect(run_ruby(start + program)).to match ["expected: 30\n", "", be_success]
    end
  end
end
