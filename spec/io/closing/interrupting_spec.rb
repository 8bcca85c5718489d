# frozen_string_literal: true

require "socket"
require "timeout"

# Known traps of the hook interface. The tag `trap:` is the number of the trap. These have no example here:
#
#   trap | why
#   -----+-----------------------------------------------------------------------------------------------------------
#     36 | Ruby's own bookkeeping; that the hook is there is in hooks/others_spec.rb
RSpec.describe "A scheduler that interrupts I/O" do
  def outcome_of(outcomes)
    outcomes.push(yield)
  rescue IOError => e
    outcomes.push(e.class)
  end

  it "leaves the buffer of an interrupted read unlocked and unchanged", :least_length, trap: 33 do
    result = IO.pipe do |reader, writer|
      Heddle.run do
        buffer = IO::Buffer.new(8)
        fiber = Fiber.schedule do
          buffer.read(reader, 8)
        rescue RuntimeError
          nil
        end
        fiber.raise("interrupt")
        writer.write("12345678")
        sleep(a_moment)
        [buffer.locked?, buffer.get_string, reader.readpartial(8)]
      end
    end
    expect(result).to eq [false, "\0" * 8, "12345678"]
  end

  # On threads it waits on.
  it "ends IO.copy_stream when its full destination is closed" do
    source, feed = IO.pipe
    full, target = IO.pipe
    [1000, 1].each { |size| nil until target.write_nonblock("x" * size, exception: false) == :wait_writable }
    feed.write("some")
    outcomes = Thread::Queue.new
    Heddle.run do
      Fiber.schedule { outcome_of(outcomes) { IO.copy_stream(source, target) } }
      until_others_wait
      target.close
    end

    expect(outcomes.pop(timeout: 0)).to eq IOError
  ensure
    [source, feed, full, target].each(&:close)
  end

  it "writes nothing into a string after a timeout has ended its read", trap: 33 do
    result = IO.pipe do |reader, writer|
      Heddle.run do
        string = +"before"
        begin
          Timeout.timeout(0.005) { reader.readpartial(10, string) }
        rescue Timeout::Error
          nil
        end
        string.replace("mine")
        writer.write("late")
        sleep(a_moment)
        [string, reader.readpartial(10)]
      end
    end
    expect(result).to eq %w[mine late]
  end

  it "loses no bytes that come after an interrupted read", trap: 33 do
    one, other = UNIXSocket.pair
    read = Heddle.run do
      20.times do
        fiber = Fiber.schedule do
          one.readpartial(100)
        rescue RuntimeError
          nil
        end
        fiber.raise("interrupt")
      end
      other.write("all of them")
      one.readpartial(100)
    end
    [one, other].each(&:close)
    expect(read).to eq "all of them"
  end

  it "raises in a waiting fiber whose IO another fiber closes", trap: 34 do
    outcome = IO.pipe do |reader, _writer|
      Heddle.run do
        outcomes = Queue.new
        Fiber.schedule { outcome_of(outcomes) { reader.gets } }
        reader.close
        outcomes.pop
      end
    end
    expect(outcome).to be IOError
  end

  it "returns to the closing fiber after every waiting fiber has left the IO", trap: 35 do
    order = []
    IO.pipe do |reader, _writer|
      Heddle.run do
        3.times do
          Fiber.schedule do
            reader.wait_readable
          rescue IOError
            order << :left
          end
        end
        reader.close
        order << :closed
      end
    end
    expect(order.tally).to eq(left: 3, closed: 1)
  end

  it "interrupts a fiber of another thread's scheduler, and returns to the closing thread", trap: 35 do
    outcomes = Queue.new
    IO.pipe do |reader, _writer|
      thread = scheduled_thread { Fiber.schedule { outcome_of(outcomes) { reader.gets } } }
      until_asleep(thread)
      Heddle.run { reader.close }
      thread.join
    end
    expect(outcomes.pop(timeout: 0)).to be IOError
  end

  it "interrupts a root that waits natively when another thread closes its IO", trap: 37 do
    outcomes = Queue.new
    IO.pipe do |reader, _writer|
      thread = scheduled_thread { outcome_of(outcomes) { reader.gets } }
      until_asleep(thread)
      reader.close
      thread.join
    end
    expect(outcomes.pop(timeout: 0)).to be IOError
  end

  it "lets the root fiber close an IO that one of its scheduler's fibers waits for", trap: 38 do
    outcomes = Queue.new
    IO.pipe do |reader, _writer|
      with_scheduler do
        Fiber.schedule { outcome_of(outcomes) { reader.gets } }
        reader.close
        outcomes.push(:closed)
      end
    end
    expect(Array.new(outcomes.size) { outcomes.pop }).to contain_exactly(IOError, :closed)
  end

  it "raises in each waiting fiber an IOError with the backtrace of its wait", trap: 39 do
    errors = []
    IO.pipe do |reader, _writer|
      Heddle.run do
        2.times do
          Fiber.schedule do
            reader.wait_readable
          rescue IOError => e
            errors << e
          end
        end
        reader.close
      end
    end
    expect(errors).to match [be_an(IOError), be_an(IOError)]
    expect(errors.flat_map(&:backtrace)).to include(/#{__FILE__}/)
  end

  it "doesn't mix large writes of several fibers to one IO", trap: 40 do
    size = 1 << 18
    lines = IO.pipe do |reader, writer|
      Heddle.run do
        read = Queue.new
        Fiber.schedule { read.push(reader.read.lines(chomp: true)) }
        written = Queue.new
        %w[a b c].each do |letter|
          Fiber.schedule do
            writer.write("#{letter * size}\n")
            written.push(letter)
          end
        end
        3.times { written.pop }
        writer.close
        read.pop
      end
    end
    expect(lines.map { |line| [line[0], line.squeeze.size, line.size] }.sort)
      .to eq [["a", 1, size], ["b", 1, size], ["c", 1, size]]
  end
end

# From version 5 of the interface on, Ruby passes a proxy object for the fiber, which is valid during an operation.
RSpec.describe Heddle::Scheduler, "#fiber_interrupt with a proxy for the fiber" do
  # Behaves as Ruby's proxy does, as far as that is documented.
  let(:proxy_class) do
    Struct.new(:fiber, :over) do
      def alive? = !over && fiber.alive?
      def raise(*) = alive? && fiber.raise(*)
      def transfer(*) = alive? && fiber.transfer(*)
    end
  end

  def proxy_of(fiber)
    proxy_class.new(fiber, false)
  end

  # Reads until it is interrupted, and records the error.
  def reading_fiber(reader, seen, proxies = [])
    Fiber.schedule do
      proxies << proxy_of(Fiber.current)
      begin
        reader.read(1)
      ensure
        proxies.last.over = true
      end
    rescue IOError => e
      seen << e.message
    end
  end

  let(:error) { IOError.new("interrupted") }

  around { |example| IO.pipe { |reader, writer| @ends = [reader, writer] and example.run } }

  it "raises in a waiting fiber, and returns at once" do
    seen = []
    Heddle.run do
      fiber = reading_fiber(@ends.first, seen)
      Fiber.scheduler.fiber_interrupt(proxy_of(fiber), error)
      seen << :back
      until_others_wait
    end

    expect(seen).to eq [:back, "interrupted"]
  end

  it "raises in the fiber when another thread calls it" do
    seen = []
    Heddle.run do
      fiber = reading_fiber(@ends.first, seen)
      scheduler = Fiber.scheduler
      Thread.new { scheduler.fiber_interrupt(proxy_of(fiber), error) }.join
      sleep(a_moment)
    end

    expect(seen).to eq ["interrupted"]
  end

  it "raises in the fiber before it returns when the root fiber calls it" do
    seen = []
    with_scheduler do |scheduler|
      proxies = []
      reading_fiber(@ends.first, seen, proxies)
      scheduler.fiber_interrupt(proxies.first, error)
      scheduler.unblock(:mutex, Fiber.current)
      seen << :back
    end

    expect(seen).to eq ["interrupted", :back]
  end

  it "doesn't raise in a fiber whose operation has ended" do
    seen = []
    Heddle.run do
      proxies = []
      fiber = Fiber.schedule { sleep(a_moment) && seen.push(:slept) }
      proxies << proxy_of(fiber).tap { |proxy| proxy.over = true }
      Fiber.scheduler.fiber_interrupt(proxies.first, error)
    end

    expect(seen).to eq [:slept]
  end

  it "refuses an object that is neither a fiber nor a proxy for one" do
    expect { Heddle.run { Fiber.scheduler.fiber_interrupt(Object.new, error) } }.to raise_error(TypeError)
  end
end
