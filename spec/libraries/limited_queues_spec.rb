# frozen_string_literal: true

RSpec.describe "Heddle::Jobs::LimitedQueues" do
  include Libraries

  let(:library) { "concurrent" }
  # `queues` limits the queue "one" to one job at a time.
  let(:preamble) { <<~RUBY }
    require "heddle/executor"
    require "heddle/jobs/limited_queues"
    def executor(**) = $executor ||= Heddle::Executor.new(on: :thread, **)
    def queues = $queues ||= Heddle::Jobs::LimitedQueues.new(executor, { "one" => 1 })
    def ended? = executor.shutdown && executor.wait_for_termination(30)
  RUBY

  it "does all 3,000 jobs that wait because of a limit when the executor is shut down" do
    expect(printed(<<~RUBY)).to eq "[true, 3000]\n"
      executor(fallback_policy: :caller_runs)
      gate = Queue.new
      done = 0
      queues.post("one") { gate.pop }
      3_000.times { queues.post("one") { done += 1 } }
      executor.shutdown
      gate << true
      p [ended?, done]
    RUBY
  end

  it "does all 3,000 jobs that a job posts after the executor's shutdown" do
    expect(printed(<<~RUBY)).to eq "3000\n"
      executor(fallback_policy: :caller_runs).shutdown
      done = 0
      queues.post("one") { 3_000.times { queues.post("one") { done += 1 } } }
      p done
    RUBY
  end

  it "keeps no place for a job that the executor refuses" do
    expect(printed(<<~RUBY)).to eq "[:refused, :ran]\n"
      executor(fibers: 1, max_queue: 1, fallback_policy: :abort)
      gate = Queue.new
      ended = Concurrent::CountDownLatch.new(2)
      2.times { executor.post { gate.pop && ended.count_down } }
      outcomes = []
      begin
        queues.post("one") { outcomes << :never }
      rescue Concurrent::RejectedExecutionError
        outcomes << :refused
      end
      2.times { gate << true }
      ended.wait(30)
      queues.post("one") { outcomes << :ran }
      ended?
      p outcomes
    RUBY
  end

  it "keeps no place for a job that the executor discards, and returns false" do
    expect(printed(<<~RUBY)).to eq "[false, false, 0]\n"
      executor(fallback_policy: :discard).shutdown
      p [queues.post("one") { }, queues.post("one") { }, queues.waiting]
    RUBY
  end

  it "gives back the place of a job once that ends by an error in the fiber that posts it" do
    expect(printed(<<~RUBY)).to eq "[NotImplementedError, :first, :second]\n"
      executor(fallback_policy: :caller_runs).shutdown
      events = []
      begin
        queues.post("one") { raise NotImplementedError }
      rescue NotImplementedError => e
        events << e.class
      end
      queues.post("one") do
        queues.post("one") { events << :second }
        events << :first
      end
      p events
    RUBY
  end
end
