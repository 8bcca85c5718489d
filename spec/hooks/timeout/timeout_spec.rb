# frozen_string_literal: true

require "socket"
require "timeout"

RSpec.describe "Timeout.timeout" do
  # A wait of this length shows up as a hang.
  let(:long) { 60 }
  let(:short) { 0.02 }

  it "returns the block's value when the block ends in time" do
    expect(Heddle.run { Timeout.timeout(long) { :value } }).to eq(:value)
  end

  it "returns the block's value when the block waits and ends in time" do
    value = virtually do
      Timeout.timeout(long) do
        sleep(1)
        :value
      end
    end

    expect(value).to eq(:value)
  end

  it "passes the number of seconds to the block" do
    expect(Heddle.run { Timeout.timeout(62.5) { |seconds| seconds } }).to eq(62.5)
  end

  it "propagates the block's own error" do
    expect { Heddle.run { Timeout.timeout(long) { raise KeyError, "mine" } } }.to raise_error(KeyError, "mine")
  end

  it "ends a sleep" do
    expect { virtually { Timeout.timeout(short) { sleep } } }.to raise_error(Timeout::Error, "execution expired")
  end

  it "ends a read, and the next read returns later data" do
    reader, writer = IO.pipe
    text = Heddle.run do
      begin
        Timeout.timeout(short) { reader.read(4) }
      rescue Timeout::Error
        writer.write("late")
      end
      reader.read(4)
    end
    [reader, writer].each(&:close)

    expect(text).to eq("late")
  end

  it "ends a write that waits for room" do
    reader, writer = IO.pipe
    expect { Heddle.run { Timeout.timeout(short) { writer.write("x" * (1 << 20)) } } }.to raise_error(Timeout::Error)
  ensure
    [reader, writer].each { |io| io&.close }
  end

  it "ends an accept, and the next connection is accepted" do
    accepted = Heddle.run do
      TCPServer.open("127.0.0.1", 0) do |server|
        begin
          Timeout.timeout(short) { server.accept }
        rescue Timeout::Error
          client = TCPSocket.new("127.0.0.1", server.local_address.ip_port)
        end
        server.accept.close
        client&.read
      ensure
        client&.close
      end
    end

    expect(accepted).to eq("")
  end

  it "ends a Queue's pop, and items that are pushed later stay in the Queue" do
    size = virtually do
      queue = Queue.new
      begin
        Timeout.timeout(short) { queue.pop }
      rescue Timeout::Error
        queue << 1
      end
      queue.size
    end

    expect(size).to eq(1)
  end

  it "ends a wait for a Mutex, whose owner keeps it" do
    states = []
    virtually do
      mutex = Mutex.new
      gate = Queue.new
      Fiber.schedule { mutex.synchronize { gate.pop } }
      begin
        Timeout.timeout(short) { mutex.lock }
      rescue Timeout::Error
        states << mutex.locked? << mutex.owned?
      end
      gate.push(:open)
      states << mutex.synchronize { :mine }
    end

    expect(states).to eq([true, false, :mine])
  end

  it "ends a wait for a ConditionVariable with the Mutex locked again" do
    owned = nil
    virtually do
      mutex = Mutex.new
      mutex.synchronize do
        Timeout.timeout(short) { ConditionVariable.new.wait(mutex) }
      rescue Timeout::Error
        owned = mutex.owned?
      end
    end

    expect(owned).to be(true)
  end

  it "ends Thread#join" do
    release = Queue.new
    thread = Thread.new { release.pop }

    expect { Heddle.run { Timeout.timeout(short) { thread.join } } }.to raise_error(Timeout::Error)
  ensure
    release.close
    thread.join
  end

  it "ends Process.wait, and the process can be waited for again" do
    reader, writer = IO.pipe
    status = Heddle.run do
      pid = Process.spawn("cat", in: reader, out: File::NULL)
      begin
        Timeout.timeout(short) { Process.wait(pid) }
      rescue Timeout::Error
        writer.close
      end
      Process.wait2(pid).last
    end
    reader.close

    expect(status).to be_success
  end

  it "ends IO.select" do
    reader, writer = IO.pipe
    attempt = lambda do
      Heddle.run do
        Timeout.timeout(short) { IO.select([reader], [], []) }
      end
    end

    expect(&attempt).to raise_error(Timeout::Error)
  ensure
    [reader, writer].each { |io| io&.close }
  end

  it "raises the given class with the given message" do
    attempt = -> { virtually { Timeout.timeout(short, IOError, "too slow") { sleep } } }

    expect(&attempt).to raise_error(IOError, "too slow")
  end

  it "raises the given class with the default message" do
    expect { virtually { Timeout.timeout(short, KeyError) { sleep } } }.to raise_error(KeyError, "execution expired")
  end

  it "raises a class that isn't a StandardError" do
    attempt = -> { virtually { Timeout.timeout(short, NotImplementedError) { sleep } } }

    expect(&attempt).to raise_error(NotImplementedError)
  end

  it "runs the block's ensure" do
    order = []
    virtually do
      Timeout.timeout(short) do
        sleep
      ensure
        order << :ensured
      end
    rescue Timeout::Error
      order << :rescued
    end

    expect(order).to eq(%i[ensured rescued])
  end

  it "lets the block's ensure wait, too" do
    order = []
    virtually do
      Timeout.timeout(short) do
        sleep
      ensure
        sleep(1)
        order << :ensured
      end
    rescue Timeout::Error
      order << :rescued
    end

    expect(order).to eq(%i[ensured rescued])
  end

  it "ends the inner block when its time limit is shorter" do
    order = []
    virtually do
      Timeout.timeout(long, IOError) do
        Timeout.timeout(short, KeyError) { sleep }
      rescue KeyError
        order << :inner
      end
      order << :outer_goes_on
    end

    expect(order).to eq(%i[inner outer_goes_on])
  end

  it "ends the outer block when its time limit is shorter" do
    order = []
    virtually do
      Timeout.timeout(short, IOError) do
        Timeout.timeout(long, KeyError) { sleep }
      rescue KeyError
        order << :inner
      end
    rescue IOError
      order << :outer
    end

    expect(order).to eq([:outer])
  end

  it "ends the outer block after the inner one" do
    order = []
    virtually do
      Timeout.timeout(short * 2, IOError) do
        begin
          Timeout.timeout(short, KeyError) { sleep }
        rescue KeyError
          order << :inner
        end
        sleep
      end
    rescue IOError
      order << :outer
    end

    expect(order).to eq(%i[inner outer])
  end

  it "doesn't raise after its block has ended" do
    result = virtually do
      Timeout.timeout(short) { :done }
      sleep(short * 3)
      :undisturbed
    end

    expect(result).to eq(:undisturbed)
  end

  it "doesn't raise after its block has ended by an error" do
    result = virtually do
      begin
        Timeout.timeout(short) { raise KeyError }
      rescue KeyError
        nil
      end
      sleep(short * 3)
      :undisturbed
    end

    expect(result).to eq(:undisturbed)
  end

  it "doesn't raise after a throw has left its block" do
    result = virtually do
      catch(:out) { Timeout.timeout(short) { throw :out } }
      sleep(short * 3)
      :undisturbed
    end

    expect(result).to eq(:undisturbed)
  end

  it "raises in no other fiber than its own" do
    results = {}
    virtually do
      Fiber.schedule do
        Timeout.timeout(short) { sleep }
      rescue Timeout::Error
        results[:interrupted] = true
      end
      5.times { |i| Fiber.schedule { results[i] = sleep(short * 3) && :slept } }
    end

    expect(results).to eq({ interrupted: true, **(0...5).to_h { |i| [i, :slept] } })
  end

  it "never raises early" do
    limits = (1..50).map { |i| i * 0.001 }
    early = []
    Heddle.run do
      limits.each do |limit|
        Fiber.schedule do
          started = Clock.now
          Timeout.timeout(limit) { sleep }
        rescue Timeout::Error
          early << limit if Clock.now - started < limit
        end
      end
    end

    expect(early).to be_empty
  end

  it "raises in each of a thousand fibers once" do
    interrupted = Hash.new(0)
    virtually do
      1000.times do |i|
        Fiber.schedule do
          Timeout.timeout(short) { sleep }
        rescue Timeout::Error
          interrupted[i] += 1
        end
      end
    end

    expect([interrupted.size, interrupted.values.uniq]).to eq([1000, [1]])
  end

  it "raises in none of ten thousand blocks that end in time" do
    done = Heddle.run do
      10_000.times.count { Timeout.timeout(long) { true } }
    end

    expect(done).to eq(10_000)
  end

  it "with 0 or nil sets no limit" do
    values = virtually { [0, nil].map { |limit| Timeout.timeout(limit) { sleep(1) && :done } } }

    expect(values).to eq(%i[done done])
  end

  it "works in several threads with schedulers of their own" do
    threads = Array.new(3) do
      Thread.new do
        Heddle.run { Timeout.timeout(short) { sleep } }
      rescue Timeout::Error
        :interrupted
      end
    end

    expect(threads.map(&:value)).to eq(%i[interrupted interrupted interrupted])
  end
end
