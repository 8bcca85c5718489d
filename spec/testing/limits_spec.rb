# frozen_string_literal: true

require "heddle/testing"
require "timeout"

RSpec.describe "Heddle::Testing.explore with limits: true" do
  include ExploredBank

  # Moves an amount from one account to the other one, within a minute.
  let(:transfers) do
    Struct.new(:from, :to, :lock) do
      def withdraw
        self.from -= 10
      end

      def deposit
        self.to += 10
      end

      def move
        Timeout.timeout(60) do
          withdraw
          deposit
        end
      rescue Timeout::Error
        nil
      end

      def move_at_once
        Timeout.timeout(60) do
          self.from -= 10
          self.to += 10
        end
      rescue Timeout::Error
        nil
      end

      def move_or_undo
        before = [from, to]
        Timeout.timeout(60) do
          withdraw
          deposit
          before = nil
        end
      rescue Timeout::Error
        self.from, self.to = before if before
      end
    end
  end

  # @return [Proc] calls the method of transfers, and checks the sum
  def program(method, fibers: 1)
    lambda do
      bank = transfers.new(100, 0, Mutex.new)
      moves = Array.new(fibers) { Heddle.spin { bank.lock.synchronize { bank.public_send(method) } } }
      Heddle.await_all(*moves)
      raise "#{bank.from} and #{bank.to}" unless bank.from + bank.to == 100
    end
  end

  def seconds = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  def compute(value)
    value + 1
  end

  %i[random pct exhaustive].each do |strategy|
    it "finds by #{strategy} that a limit may elapse between two writes" do
      found = failure(program(:move), limits: true, strategy:)

      expect(found.cause).to have_attributes(class: RuntimeError, message: "90 and 0")
    end
  end

  it "does not fail where the writes are undone" do
    expect(Heddle::Testing.explore(limits: true, &program(:move_or_undo, fibers: 2)).runs).to eq(1_000)
  end

  it "does not fail where the writes are undone by any schedule of :exhaustive" do
    done = Heddle::Testing.explore(limits: true, strategy: :exhaustive, &program(:move_or_undo))

    expect(done.complete).to be(true)
  end

  it "lets no limit elapse between two lines where no tick comes" do
    done = Heddle::Testing.explore(limits: true, strategy: :exhaustive, &program(:move_at_once))

    expect(done.complete).to be(true)
  end

  it "counts a limit that elapses as a preemption" do
    expect(failure(program(:move), limits: true, strategy: :exhaustive, preemptions: 0)).to be_nil
  end

  it "replays the run by its seed" do
    found = failure(program(:move), limits: true)

    expect(failure(program(:move), limits: true, seed: found.seed).schedule).to eq(found.schedule)
  end

  it "replays the shortened run by its schedule" do
    schedule = failure(program(:move, fibers: 2), limits: true).schedule

    expect(failure(program(:move, fibers: 2), limits: true, schedule:)).to have_attributes(schedule:, switches: 1)
  end

  it "tells the limit that elapses, and where" do
    expect(failure(program(:move), limits: true).message.gsub(/ +/, " ")).to match(
      /limits_spec\.rb:13 self\.from -= 10\n -- the limit of 60 s at \S*limits_spec\.rb:21 elapses here$/
    )
  end

  it "tells each time that a limit elapses which another fiber has moved too late" do
    too_late = lambda do
      limit = moved = nil
      child = Heddle.spin do
        Heddle.cancel_after(10) do |deadline|
          limit = deadline
          5.times { |number| compute(number) }
          limit = nil
        end
      rescue Heddle::TimeoutError
        raise "ended although it was moved" if moved
      end
      other = Heddle.spin do
        6.times do |number|
          has_elapsed = limit&.remaining&.zero?
          moved = true if limit&.reset(20) && has_elapsed
          compute(number)
        end
      end
      Heddle.await_all(child, other)
    end

    expect(failure(too_late, limits: true).message.scan(/-- the limit of .* elapses here/).size).to eq 2
  end

  it "moves the clock to the end of the limit, and ends the sleeps before it" do
    # When the block ends, and when the sleep does. It may begin after the block.
    times = []
    Heddle::Testing.explore(limits: true, runs: 100) do
      began = seconds
      sleep = Heddle.spin { sleep 30 }
      Heddle.snooze
      Heddle.move_on_after(60) { compute(1) }
      times << [seconds - began, Heddle.await(sleep) && (seconds - began)]
    end

    expect(times.uniq).to contain_exactly([0.0, 30.0], [60.0, 60.0], [60.0, 90.0])
  end

  it "lets the limit of a fiber that waits elapse while another one computes" do
    values = []
    Heddle::Testing.explore(limits: true, runs: 100) do
      queue = Queue.new
      waiting = Heddle.spin { Heddle.move_on_after(60, value: :late) { queue.pop } }
      Heddle.snooze
      queue << compute(1)
      values << Heddle.await(waiting)
    end

    expect(values.uniq).to contain_exactly(2, :late)
  end

  it "lets the wait of Queue#pop with a limit of its own end while another fiber computes" do
    values = []
    Heddle::Testing.explore(limits: true, runs: 100) do
      queue = Queue.new
      waiting = Heddle.spin { queue.pop(timeout: 60) }
      Heddle.snooze
      queue << compute(1)
      values << Heddle.await(waiting)
    end

    expect(values.uniq).to contain_exactly(2, nil)
  end

  it "lets the inner one of two limits elapse, or both" do
    %i[random pct exhaustive].each do |strategy|
      values = []
      Heddle::Testing.explore(limits: true, runs: 200, strategy:) do
        values << Heddle.move_on_after(120, value: :outer) do
          Heddle.move_on_after(60, value: :inner) { compute(1) }.tap { compute(2) }
        end
      end

      expect(values.uniq).to contain_exactly(2, :inner, :outer)
    end
  end

  it "lets no limit elapse in Heddle.without_preemption" do
    sizes = []
    Heddle::Testing.explore(limits: true, strategy: :exhaustive) do
      values = []
      Heddle.move_on_after(60) do
        compute(0)
        Heddle.without_preemption { 2.times { |value| values << compute(value) } }
      end
      sizes << values.size
    end

    expect(sizes.uniq).to contain_exactly(0, 2)
  end
end
