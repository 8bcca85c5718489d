# frozen_string_literal: true

RSpec.describe "The tree of fibers" do
  # Spins a fiber that waits for ever, and records its end.
  def endless(events, name)
    Heddle.spin(background: true) do
      sleep
    ensure
      events << name
    end
  end

  it "stops the children in the background of a parent that ends, in order, and waits for their ensure" do
    events = []
    virtually do
      parent = Heddle.spin do
        3.times do |i|
          Heddle.spin(background: true) do
            sleep
          ensure
            events << [:begun, i]
            sleep(1)
            events << [:done, i]
          end
        end
        Heddle.snooze
      end
      Heddle.await(parent)
      events << :ended
    end

    expect(events).to eq([0, 1, 2].map { |i| [:begun, i] } + [0, 1, 2].map { |i| [:done, i] } + [:ended])
  end

  it "stops all generations below a root that ends" do
    events = []
    Heddle.run do
      Heddle.spin(background: true) do
        Heddle.spin { endless(events, :great_grandchild) && sleep }
        endless(events, :grandchild)
        sleep
      ensure
        events << :child
      end
      # Each snooze lets one generation begin.
      3.times { Heddle.snooze }
      events << :root
    end

    expect(events.first).to eq(:root)
    expect(events).to contain_exactly(:root, :child, :grandchild, :great_grandchild)
  end

  it "never runs a child in the background that hasn't begun when its parent ends" do
    events = []
    Heddle.run do
      Heddle.spin(background: true) { events << :ran }
      :done
    end

    expect(events).to eq([])
  end

  it "doesn't stop fibers of Fiber.schedule" do
    events = []
    virtually { Fiber.schedule { sleep(1) && (events << :finished) } }

    expect(events).to eq([:finished])
  end

  it "raises a child's unhandled error in its parent, wherever the parent waits" do
    waits = {
      sleep: -> { sleep },
      queue: -> { Queue.new.pop },
      the_end: -> {},
      read: -> { IO.pipe { |reader, _writer| reader.read(1) } },
      await: -> { Heddle.await_all(Heddle.spin { sleep }) }
    }
    raised = waits.transform_values do |wait|
      Heddle.run do
        Heddle.await(Heddle.spin { Heddle.spin { raise KeyError, "mine" } && wait.call })
      rescue KeyError => e
        e.message
      end
    end

    expect(raised.values).to all(eq("mine"))
  end

  it "propagates an error up to the root, and stops all fibers on the way" do
    events = []
    attempt = lambda do
      Heddle.run do
        Heddle.spin do
          endless(events, :brother)
          Heddle.spin { raise KeyError, "deep" }
          sleep
        ensure
          events << :parent
        end
        sleep
      ensure
        events << :root
      end
    end

    expect(&attempt).to raise_error(KeyError, "deep")
    # The sibling is stopped at once, and the parent raises the error in its next wait.
    expect(events).to eq(%i[brother parent root])
  end

  it "raises a child's error in a parent that doesn't wait, at the parent's end at the latest" do
    attempt = lambda do
      Heddle.run do
        child = Heddle.spin { raise KeyError, "unseen" }
        Heddle.snooze while child.alive?
      rescue KeyError
        raise IOError, "seen in the block"
      end
    end

    expect(&attempt).to raise_error(IOError)
  end

  it "ends the parent by the error of a child's ensure that runs while the child is stopped" do
    attempt = lambda do
      Heddle.run do
        Heddle.spin(background: true) do
          sleep
        ensure
          raise KeyError, "in ensure"
        end
        Heddle.snooze
      end
    end

    expect(&attempt).to raise_error(KeyError, "in ensure")
  end

  it "keeps the parent's own error if a child's error comes, too" do
    attempt = lambda do
      Heddle.run do
        Heddle.spin do
          sleep
        ensure
          raise KeyError, "child's"
        end
        Heddle.snooze
        raise IOError, "parent's"
      end
    end

    expect(&attempt).to raise_error(IOError, "parent's")
  end

  it "stays intact when a parent rescues a child's error" do
    value = Heddle.run do
      begin
        Heddle.spin { raise KeyError }
        sleep
      rescue KeyError
        :taken
      end
      Heddle.await(Heddle.spin { :goes_on })
    end

    expect(value).to eq(:goes_on)
  end

  it "propagates exit to the root, which stops the other fibers" do
    events = []
    attempt = lambda do
      Heddle.run do
        endless(events, :brother)
        Heddle.spin { exit(3) }
        sleep
      end
    end

    expect(&attempt).to raise_error(SystemExit) { |error| expect(error.status).to eq(3) }
    expect(events).to eq([:brother])
  end

  it "ends as any other when the thread of its root fiber ends" do
    events = Queue.new
    Thread.new do
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Heddle.spin { sleep(a_moment) && (events << :awaited) }
      endless(events, :stopped)
      Heddle.snooze
    end.join

    expect(Array.new(2) { events.pop(timeout: 0) }).to eq(%i[awaited stopped])
  end

  it "is stopped at the end of a program, before its at_exit" do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      $stdout.sync = true
      at_exit { puts "at_exit" }
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Heddle.spin(background: true) { begin; sleep; ensure; sleep(a_moment); puts "ensured"; end }
      Heddle.snooze
      puts "main"
    RUBY

    expect([output, errors, status.success?]).to eq(["main\nensured\nat_exit\n", "", true])
  end

  it "raises a child's error at the end of a thread whose root didn't wait for it" do
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Fiber.set_scheduler(Heddle::Scheduler.new)
      Heddle.spin(background: true) do
        sleep
      ensure
        raise KeyError, "late"
      end
      Heddle.snooze
    end

    expect { thread.join }.to raise_error(KeyError, "late")
  end

  it "raises a child's error at the end of a thread whose root has stopped waiting" do
    thread = Thread.new do
      Thread.current.report_on_exception = false
      Fiber.set_scheduler(Heddle::Scheduler.new)
      quick = Heddle.spin { Heddle.spin { :grandchild } && :done }
      Heddle.spin { raise KeyError, "unseen" }
      Heddle.await(quick)
    end

    expect { thread.join }.to raise_error(KeyError, "unseen")
  end

  it "lets a child's ensure await other fibers" do
    events = []
    virtually do
      Heddle.spin(background: true) do
        sleep
      ensure
        events.concat(Heddle.await_all(Heddle.spin { sleep(1) && :tidied }))
      end
      Heddle.snooze
    end

    expect(events).to eq([:tidied])
  end

  it "runs each ensure once when parent and child are terminated at the same time" do
    events = []
    virtually do
      child = nil
      parent = Heddle.spin do
        child = Heddle.spin do
          sleep
        ensure
          sleep(1)
          events << :child
        end
        sleep
      ensure
        events << :parent
      end
      2.times { Heddle.snooze }
      [child, parent, child].each { |fiber| Heddle.stop(fiber) }
    end

    expect(events).to contain_exactly(:child, :parent)
  end
end
