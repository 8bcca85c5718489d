# frozen_string_literal: true

require "timeout"

RSpec.describe "Cancelling" do
  Waits::KINDS.each do |kind, wait|
    # A name resolution ends by itself, perhaps at once.
    next if kind == "name resolution"

    context "when a fiber waits in #{kind}" do
      it "by move_on_after continues after the block, and leaves nothing behind" do
        value = Heddle.run do
          before = state_counts
          value = Heddle.move_on_after(0.005, value: :moved_on) { wait.call }
          # The kernel may take a moment to confirm that the operation is cancelled.
          pass_until { state_counts == before }
          value
        end

        expect(value).to eq(:moved_on)
      end

      it "by cancel_after raises the error" do
        expect { Heddle.run { Heddle.cancel_after(0.005, KeyError.new("too late")) { wait.call } } }
          .to raise_error(KeyError, "too late")
      end

      it "by terminate ends the fiber" do
        events = []
        Heddle.run do
          fiber = Heddle.spin do
            wait.call
          ensure
            events << :ensured
          end
          Heddle.snooze
          Heddle.stop(fiber)
          events.concat(Heddle.await_all(fiber))
        end

        expect(events).to eq([:ensured, nil])
      end
    end
  end

  more = {
    "an await" => -> { Heddle.await(Heddle.spin(background: true) { sleep }) },
    "a race" => -> { Heddle.race(-> { sleep }) },
    "a map" => -> { Heddle.map([1]) { sleep } },
    "a connect" => lambda {
      # The server's queue of unaccepted connections is full.
      server = Socket.new(:INET, :STREAM)
      server.bind(Addrinfo.tcp("127.0.0.1", 0))
      server.listen(0)
      clients = Array.new(3) { Socket.new(:INET, :STREAM) }
      begin
        clients.each { |client| client.connect_nonblock(server.local_address, exception: false) }
        TCPSocket.new("127.0.0.1", server.local_address.ip_port)
      ensure
        [server, *clients].each(&:close)
      end
    },
    "a thread pool's work" => lambda {
      pool = Heddle::ThreadPool.new(threads: 1)
      gate = Queue.new
      begin
        pool.process { gate.pop }
      ensure
        gate.push(:open)
        pool.close
      end
    },
    "a semaphore" => -> { Heddle::Semaphore.new.tap(&:acquire).acquire },
    "a barrier" => -> { Heddle::Barrier.new.tap { |barrier| barrier.spin(background: true) { sleep } }.await_all }
  }
  more.each do |kind, wait|
    it "ends #{kind}" do
      value = Heddle.run { Heddle.move_on_after(0.005, value: :moved_on) { wait.call } }

      expect(value).to eq(:moved_on)
    end
  end

  it "ends a name resolution" do
    value = Heddle.run do
      Heddle.move_on_after(0, value: :moved_on) { Addrinfo.getaddrinfo("localhost", nil) && sleep }
    end

    expect(value).to eq(:moved_on)
  end

  describe "Heddle.cancel_after" do
    it "returns the block's value when the block ends in time" do
      expect(virtually { Heddle.cancel_after(60) { sleep(1) && :value } }).to eq(:value)
    end

    it "raises an error that a rescue of Timeout::Error handles" do
      expect { virtually { Heddle.cancel_after(1) { sleep } } }.to raise_error(Timeout::Error)
    end

    it "raises Heddle::TimeoutError, which a rescue of StandardError in the block doesn't handle" do
      attempt = lambda do
        virtually do
          Heddle.cancel_after(0.001) do
            sleep
          rescue StandardError
            :taken
          end
        end
      end

      expect(&attempt).to raise_error(Heddle::TimeoutError, "cancel_after: 0.001 s elapsed")
    end

    it "raises an error that the caller's rescue of StandardError handles, so that it does not end the tree" do
      events = []
      virtually do
        raised = Queue.new
        brother = Heddle.spin { raised.pop && (events << :brother) }
        Heddle.spin do
          Heddle.cancel_after(1) { sleep }
        rescue => e # rubocop:disable Style/RescueStandardError -- as programs write it
          events << e.class
          raised.push(true)
        end
        Heddle.await(brother)
      end

      expect(events).to eq([Heddle::TimeoutError, :brother])
    end

    it "raises an error whose cause is the Heddle::Cancelled of the block" do
      cause = virtually do
        Heddle.cancel_after(1) { sleep }
      rescue Heddle::TimeoutError => e
        e.cause
      end

      expect(cause).to be_a(Heddle::Cancelled)
    end

    it "raises the class, or the exception, that it is given" do
      error = KeyError.new("mine")
      raised = [IOError, error].map do |wanted|
        virtually { Heddle.cancel_after(1, wanted) { sleep } }
      rescue StandardError => e
        e
      end

      expect(raised).to match([be_a(IOError), be(error)])
    end

    it "runs the block's ensure, which may wait" do
      events = []
      virtually do
        Heddle.cancel_after(1, KeyError) do
          sleep
        ensure
          sleep(1)
          events << :ensured
        end
      rescue KeyError
        events << :raised
      end

      expect(events).to eq(%i[ensured raised])
    end

    it "doesn't raise after the block's end, even if the time limit expired before the next wait" do
      value = Heddle.run do
        Heddle.cancel_after(0.001) do
          finish = Clock.now + 0.003
          nil until Clock.now > finish
        end
        sleep(a_moment) && :unharmed
      end

      expect(value).to eq(:unharmed)
    end

    it "leaves data that come later to the next read" do
      read = IO.pipe do |reader, writer|
        Heddle.run do
          begin
            Heddle.cancel_after(0.005) { reader.read(4) }
          rescue Heddle::TimeoutError
            writer.write("late")
          end
          reader.read(4)
        end
      end

      expect(read).to eq("late")
    end

    it "cancels a block in a thread's root fiber, while other fibers continue" do
      events = []
      error = with_scheduler do
        Heddle.cancel_after(60) do |deadline|
          Heddle.spin { (events << :fiber) && deadline.reset(0) }
          IO.pipe { |reader, _writer| reader.gets }
        end
      rescue Heddle::TimeoutError => e
        e
      end

      expect([events, error]).to match([[:fiber], be_a(Heddle::TimeoutError)])
    end
  end

  describe "Heddle.move_on_after" do
    it "returns the block's value when the block ends in time" do
      expect(Heddle.run { Heddle.move_on_after(60, value: :late) { :value } }).to eq(:value)
    end

    it "returns nil by default" do
      expect(virtually { Heddle.move_on_after(1) { sleep } }).to be_nil
    end

    it "propagates the block's own error" do
      expect { Heddle.run { Heddle.move_on_after(60) { raise KeyError } } }.to raise_error(KeyError)
    end

    it "works in a thread's root fiber" do
      expect(with_scheduler { Heddle.move_on_after(0.001, value: :late) { sleep } }).to eq(:late)
    end

    it "ends the block's fiber when the thread's root is interrupted" do
      events = Queue.new
      ready = Queue.new
      thread = scheduled_thread do
        Heddle.move_on_after(60) do
          ready.push(true)
          sleep
        ensure
          events.push(:ensured)
        end
      rescue KeyError
        events.push(:raised)
      end
      ready.pop
      until_asleep(thread)
      thread.raise(KeyError)
      thread.join

      expect(Array.new(events.size) { events.pop }).to eq(%i[ensured raised])
    end
  end

  describe "of nested blocks" do
    it "ends the inner block if its time limit expires first" do
      values = virtually do
        Heddle.move_on_after(60, value: :outer) do
          [Heddle.move_on_after(1, value: :inner) { sleep }, :outer_goes_on]
        end
      end

      expect(values).to eq(%i[inner outer_goes_on])
    end

    it "ends the outer block if its time limit expires first" do
      value = virtually do
        Heddle.move_on_after(1, value: :outer) do
          Heddle.move_on_after(60, value: :inner) { sleep }
          :not_reached
        end
      end

      expect(value).to eq(:outer)
    end

    it "ends the innermost block when several time limits have expired" do
      events = []
      Heddle.run do
        Heddle.move_on_after(0.001) do
          events << Heddle.move_on_after(0.002, value: :inner) do
            finish = Clock.now + 0.005
            nil until Clock.now > finish
            sleep
          end
          sleep
          events << :not_reached
        end
      end

      expect(events).to eq([:inner])
    end

    it "works with Timeout.timeout inside and outside" do
      events = []
      virtually do
        Heddle.move_on_after(60) do
          Timeout.timeout(1) { sleep }
        rescue Timeout::Error
          events << :timeout
        end
        Timeout.timeout(60) { events << Heddle.move_on_after(1, value: :moved_on) { sleep } }
      end

      expect(events).to eq(%i[timeout moved_on])
    end

    it "leaves no timer behind after thousands of blocks" do
      before, after = Heddle.run do
        before = state_counts
        1000.times { Heddle.move_on_after(60) { Heddle.cancel_after(30) { Heddle.snooze } } }
        [before, state_counts]
      end

      expect(after).to eq(before)
    end
  end

  it "creates no thread, nor does Timeout.timeout" do
    before = Thread.list
    created = Heddle.run do
      Heddle.move_on_after(60) { Timeout.timeout(60) { Heddle.snooze || (Thread.list - before) } }
    end

    expect(created).to be_empty
  end
end
