# frozen_string_literal: true

RSpec.describe "Several exceptions for the root at once" do
  it "are raised one after the other if a fiber's signal handlers have raised them" do
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      trap(:USR1) { raise "one" }
      trap(:USR2) { raise "two" }
      Fiber.set_scheduler(Heddle::Scheduler.new)
      gate = Thread::Queue.new
      Fiber.schedule do
        gate.pop
        Heddle.without_preemption { %i[USR1 USR2].each { |signal| Process.kill(signal, Process.pid) } }
        sleep(0)
      end
      gate.push(true)
      2.times do
        Fiber.scheduler.run
        puts "ended"
      rescue => e
        puts e.message
      end
    RUBY
    expect([output, errors]).to eq ["one\ntwo\n", ""]
  end

  it "are raised one after the other if another thread has raised them" do
    output, errors, = run_ruby(<<~RUBY)
      require "heddle"
      require #{Settling::PATH.dump}
      rescued = Thread::Queue.new
      thread = Thread.new do
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { sleep }
        loop do
          Fiber.scheduler.run
        rescue => e
          rescued << e.message
        end
      end
      Settling.one(thread)
      thread.raise("one")
      thread.raise("two")
      Settling.one(thread)
      puts rescued.pop until rescued.empty?
      $stdout.flush
      exit!
    RUBY
    expect([output, errors]).to eq ["one\ntwo\n", ""]
  end
end
