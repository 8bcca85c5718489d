# frozen_string_literal: true

# A thread that closes an IO waits for the thread whose fiber reads it, and asks now and then whether that one is
# stopped. Ruby checks interrupts in that question, too.
RSpec.describe "IO#close in a thread, while the thread of the fiber that reads the IO waits elsewhere" do
  before { skip "there is no wait on poll, which drops the read at once" if Heddle::Scheduler.new.backend == :poll }

  # What the closing thread does if another thread interrupts it in that question, and whether the IO is closed then.
  def close_interrupted(&interrupt)
    reader, writer = IO.pipe
    parked, done, go = Array.new(3) { Queue.new }
    owner = Thread.new { read_and_wait_elsewhere(reader, parked, done) }
    parked.pop
    closer = Thread.new { go.pop && (reader.close || :continued) }
    closer.report_on_exception = false
    # On Ruby 4.0 a close waits until the reader has left.
    with_end = ->(thread) { [interrupt.call(thread), done.push(true)] }
    outcome = in_question(closer, with_end).enable(target_thread: closer) { go.push(true) && outcome_of(closer) }
    [outcome, reader.closed?]
  ensure
    done.push(true)
    owner.join
    writer.close
  end

  # Interrupts the thread in its first question.
  def in_question(thread, interrupt)
    asked = false
    TracePoint.new(:c_call) do |event|
      next if asked || event.method_id != :stop?

      asked = true
      Thread.new { interrupt.call(thread) }.join
    end
  end

  def read_and_wait_elsewhere(reader, parked, done)
    Heddle.run do
      Fiber.schedule { expect { reader.read }.to raise_error(IOError) }
      # The kernel gets the read.
      sleep(a_moment)
      Fiber.new(blocking: true) { parked.push(true) && done.pop }.resume
    end
  end

  def outcome_of(thread)
    thread.value
  rescue StandardError => e
    e.message
  end

  it "raises what another thread raises in it, and the IO is closed", :regression do
    expect(close_interrupted { |closer| closer.raise("raised") }).to eq ["raised", true]
  end

  it "ends if another thread kills it, and the IO is closed", :regression do
    expect(close_interrupted(&:kill)).to eq [nil, true]
  end
end
