# frozen_string_literal: true

RSpec.describe Heddle::Pool do
  def with_pool(threads)
    pool = described_class.new(threads: threads)
    yield pool
  ensure
    pool.close unless pool.nil? || pool.closed?
  end

  [1, 3].each do |threads|
    context "with #{threads} thread(s)" do
      it "returns the values in the order of the jobs" do
        values = with_pool(threads) do |pool|
          pool.await_all(*Array.new(10) { |i| pool.go(i) { |n| sleep(0.0001 * (10 - n)) && n } })
        end

        expect(values).to eq((0...10).to_a)
      end

      it "finishes a level that loads models that load meshes and materials, each waiting for its children" do
        loaded = Queue.new
        with_pool(threads) do |pool|
          load_part = ->(name) { sleep(0.0001) && loaded.push(name) }
          load_model = lambda do |name|
            %w[mesh material].each { |part| pool.go("#{name}/#{part}", &load_part) }
            pool.wait
            loaded.push(name)
          end
          load_level = lambda do
            %w[tree rock river].each { |name| pool.go(name, &load_model) }
            pool.wait
            loaded.push("level")
          end
          pool.go(&load_level).await
        end
        names = Array.new(loaded.size) { loaded.pop }

        expect(names.size).to eq(10)
        expect(names.last).to eq("level")
        %w[tree rock river].each do |name|
          expect(names.index(name)).to be > [names.index("#{name}/mesh"), names.index("#{name}/material")].max
        end
      end

      it "finishes jobs that wait for jobs, a hundred deep" do
        dive = lambda do |pool, depth|
          depth.zero? ? :bottom : pool.go { dive.call(pool, depth - 1) }.await
        end

        expect(with_pool(threads) { |pool| pool.go { dive.call(pool, 100) }.await }).to eq(:bottom)
      end

      it "raises a job's error in the fiber that awaits it, after the other jobs have ended" do
        begun = Queue.new
        events = Queue.new
        attempt = lambda do
          with_pool(threads) do |pool|
            slow = pool.go do
              begun.push(true)
              sleep
            ensure
              events.push(:ensured)
            end
            begun.pop
            failing = pool.go { raise KeyError, "in the pool" }
            pool.await_all(slow, failing)
          end
        end

        expect(&attempt).to raise_error(KeyError, "in the pool")
        expect(events.pop(timeout: 0)).to eq(:ensured)
      end

      it "raises a child's error in its parent, wherever that waits" do
        message = with_pool(threads) do |pool|
          job = pool.go do
            pool.go { sleep(0.001) && raise(KeyError, "child's") }
            sleep
          rescue KeyError => e
            e.message
          end
          job.await
        end

        expect(message).to eq("child's")
      end

      it "stops the children of a job that ends" do
        events = Queue.new
        with_pool(threads) do |pool|
          job = pool.go do
            pool.go do
              events.push(:begun)
              sleep
            ensure
              events.push(:ensured)
            end
            events.pop
            :ended
          end
          events.push(job.await)
        end

        expect(Array.new(events.size) { events.pop }).to eq(%i[ensured ended])
      end

      it "stops fibers that a job has spun" do
        events = Queue.new
        with_pool(threads) do |pool|
          pool.go do
            Heddle.spin do
              sleep
            ensure
              events.push(:ensured)
            end
            Heddle.snooze
          end
          pool.wait
        end

        expect(events.pop(timeout: 0)).to eq(:ensured)
      end

      it "stops all jobs on Heddle::Pool#stop" do
        events = Queue.new
        with_pool(threads) do |pool|
          jobs = Array.new(5) do
            pool.go do
              events.push(:begun)
              sleep
            ensure
              events.push(:ensured)
            end
          end
          5.times { events.pop }
          pool.stop
          expect(pool.await_all(*jobs)).to eq([nil] * 5)
        end

        expect(Array.new(events.size) { events.pop }).to eq([:ensured] * 5)
      end

      it "can be awaited by a fiber of another scheduler, which can be cancelled" do
        gate = Queue.new
        values = with_pool(threads) do |pool|
          Heddle.run do
            job = pool.go { gate.pop && :finished }
            moved_on = Heddle.move_on_after(0.001, value: :moved_on) { job.await }
            gate.push(:open)
            [moved_on, job.await]
          end
        end

        expect(values).to eq(%i[moved_on finished])
      end
    end
  end

  it "moves jobs that haven't begun to an idle thread" do
    seen = with_pool(2) do |pool|
      gate = Queue.new
      # The job computes until another job has run. Only another thread can run that one.
      busy = pool.go { Thread.pass until gate.size.positive? || gate.closed? }
      quick = pool.go { gate.push(true) && :quick }
      pool.await_all(busy, quick).last
    end

    expect(seen).to eq(:quick)
  end

  it "runs jobs on as many threads as it has" do
    threads = with_pool(3) do |pool|
      gate = Queue.new
      # Each of the three keeps its thread from taking another one.
      jobs = Array.new(3) { pool.go { (gate.push(true) && (Thread.pass until gate.size == 3)) || Thread.current } }
      pool.await_all(*jobs)
    end

    expect(threads.uniq.size).to eq(3)
  end

  it "waits for all jobs before it closes, and raises the error of a job that was never awaited" do
    pool = described_class.new(threads: 1)
    done = false
    pool.go { pool.go { sleep(0.001) && (done = true) } && pool.wait }
    pool.close
    expect(done).to be(true)

    other = described_class.new(threads: 1)
    other.go { raise KeyError, "unheard" }
    expect { other.close }.to raise_error(KeyError, "unheard")
    expect { other.go { :late } }.to raise_error(ClosedQueueError)
  end

  it "can't be closed by one of its jobs" do
    expect { with_pool(1) { |pool| pool.go { pool.close }.await } }.to raise_error(FiberError, /its own pool/)
  end

  it "refuses to await an object that is none of its jobs, and a job that awaits itself" do
    with_pool(1) do |pool|
      expect { pool.await_all(:job) }.to raise_error(TypeError, /:job is not a job of this pool/)
      current = Queue.new
      job = pool.go { current.pop.await }
      current.push(job)
      expect { job.await }.to raise_error(FiberError, /can't await itself/)
    end
  end

  it "passes its options on to the schedulers, and refuses invalid ones at once" do
    with_pool_of_poll = described_class.new(threads: 1, backend: :poll)
    value = with_pool_of_poll.go { Fiber.scheduler.backend }.await
    with_pool_of_poll.close

    expect(value).to eq(ENV.fetch("HEDDLE_BACKEND", "poll").to_sym)
    expect { described_class.new(backend: :windows) }.to raise_error(ArgumentError, /backend/)
  end

  it "works in a forked child, with threads of its own" do
    with_pool(1) do |pool|
      pool.go { :parent }.await
      value = in_child do
        pool.go { :child }.await.tap { pool.close }
      end
      expect(value).to eq(:child)
    end
  end

  it "stays closed in a forked child" do
    pool = described_class.new(threads: 1).tap(&:close)
    answer = in_child do
      pool.go { :child }
    rescue ClosedQueueError => e
      [pool.closed?, e.message]
    end

    expect(answer).to eq([true, "Heddle::Pool#go: the pool is closed"])
  end

  it "is closed by a forked child for that child" do
    with_pool(1) do |pool|
      closed = in_child { pool.close.closed? }
      expect([closed, pool.closed?]).to eq([true, false])
    end
  end

  it "passes keywords to the block" do
    with_pool(1) { |pool| expect(pool.go(1, b: 2) { |a, b: 0| a + b }.await).to eq(3) }
  end

  it "keeps no job that has ended, awaited or not" do
    kept = with_pool(1) do |pool|
      work = lambda do
        500.times { pool.go { :heard }.await && pool.go { :unheard } }
        pool.wait
        GC.start
        ObjectSpace.each_object(described_class::Job).count
      end
      # In a job they are its children.
      [work.call, pool.go(&work).await]
    end

    # The collector takes some for used that are not.
    expect(kept).to all(be < 200)
  end

  it "raises the error of a job that was not awaited once, in wait" do
    errors = with_pool(1) do |pool|
      2.times { |i| pool.go { raise KeyError, "unheard #{i}" } }
      Array.new(2) do
        pool.wait && :nothing
      rescue KeyError => e
        e.message
      end
    end

    expect(errors).to eq(["unheard 0", :nothing])
  end

  it "raises an error only in the await of its job" do
    raised = with_pool(1) do |pool|
      failed = pool.go { raise KeyError, "mine" }
      begin
        failed.await
      rescue KeyError => e
        [e.message, pool.wait.equal?(pool)]
      end
    end

    expect(raised).to eq(["mine", true])
  end

  # Calls the block on the child's thread, before the child's error is sent to its parent.
  def before_propagation(&block)
    first = true
    TracePoint.new(:call) do |point|
      next unless first && point.method_id == :propagate

      first = false
      block.call
    end
  end

  it "raises a child's error once, if its parent awaits it when it is about to be sent" do
    found = Queue.new
    parent_thread = nil
    ending = Queue.new
    awaiting = Queue.new
    tracing = before_propagation { (ending << true) && awaiting.pop && until_asleep(parent_thread) }
    parent = lambda do |pool|
      parent_thread = Thread.current
      child = pool.go { raise "of the child" }
      # So the other thread takes the child.
      Fiber.blocking { ending.pop }
      found << begin
        awaiting << true
        pool.await_all(child)
      rescue StandardError => e
        e.message
      end
      # Another wait, in which it must not be raised again.
      Queue.new.pop(timeout: 0.01)
      found << "once"
    end

    with_pool(2) { |pool| tracing.enable(target_thread: nil) { pool.go(pool, &parent).await } }
    expect(Array.new(found.size) { found.pop }).to eq(["of the child", "once"])
  end

  it "replaces a thread that is killed, whose jobs raise ThreadError where they are awaited" do
    with_pool(1) do |pool|
      threads = Queue.new
      lost = pool.go { threads.push(Thread.current) && sleep }
      waiting = pool.go { threads.push(:begun) && sleep }
      worker = threads.pop
      threads.pop
      queued = pool.go { :ran } if worker.kill

      expect { lost.await }.to raise_error(ThreadError, /its thread was killed/)
      expect { waiting.await }.to raise_error(ThreadError, /its thread was killed/)
      expect(queued.await).to eq(:ran)
    end
  end

  it "ends with the program although threads are replaced" do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      pool = Heddle::Pool.new(threads: 2)
      thread_pool = Heddle::ThreadPool.new(threads: 1)
      begun = Queue.new
      2.times { pool.go { begun.push(true) && sleep } }
      thread_pool.go { begun.push(true) && sleep }
      3.times { begun.pop }
      puts "end"
    RUBY

    expect([output, errors, status.success?]).to eq(["end\n", "", true])
  end

  it "answers for a job as a thread pool does" do
    thread_pool = Heddle::ThreadPool.new(threads: 1)
    with_pool(1) do |pool|
      answers = [pool, thread_pool].map do |each|
        gate = Queue.new
        running = each.go(1) { |n| gate.pop && n }
        pending = each.go { gate.pop && :ran }
        gate.push(:open)
        value = running.await
        gate.push(:open)
        [value, running.ended?, pending.await, pending.terminate.equal?(pending), pending.await,
         pending.inspect[%r{(?<=Job ).*/(.*)>}, 1]]
      end

      expect(answers.first).to eq(answers.last)
      expect(answers.first.first(5)).to eq([1, true, :ran, true, :ran])
    end
  ensure
    thread_pool.close
  end

  it "can be waited for by a plain thread that a job starts", :regression do
    waited = with_pool(1) do |pool|
      pool.go { Thread.new { pool.wait.equal?(pool) }.value }.await
    end

    expect(waited).to be true
  end

  it "opens nothing to try its options", :regression do
    opened = in_child do
      GC.disable
      descriptors = -> { Dir.children("/proc/self/fd").size }
      before = descriptors.call
      described_class.new(threads: 1, preempt: :none, backend: :poll).close
      descriptors.call - before
    end

    expect(opened).to eq(0)
  end
end
