# frozen_string_literal: true

require "timeout"

# Thread.handle_interrupt in fibers that may be preempted: each has masks of its own.
RSpec.describe "A fiber that masks exceptions" do
  # Computes for ever with a time limit, and returns the outcome.
  def limited(error = Timeout::Error)
    Timeout.timeout(0.01, error) { loop { Integer.sqrt(2) } }
  rescue error
    :interrupted
  end

  Selection.tickers.each do |ticker|
    it "doesn't mask the time limits of other fibers while it waits, with the ticker #{ticker}" do
      outcome = Heddle.run(preempt: :all, ticker:) do
        queue = Queue.new
        Heddle.spin(background: true) { Thread.handle_interrupt(Exception => :never) { queue.pop } }
        Heddle.await(Heddle.spin { limited }).tap { queue.push(true) }
      end
      expect(outcome).to eq :interrupted
    end
  end

  it "doesn't mask the time limits of other fibers while it is preempted" do
    outcome = Heddle.run(preempt: :all, quantum: 0.002) do
      over = false
      Heddle.spin(background: true) { Thread.handle_interrupt(Exception => :never) { Integer.sqrt(2) until over } }
      Heddle.await(Heddle.spin { limited }).tap { over = true }
    end
    expect(outcome).to eq :interrupted
  end

  it "is interrupted when the masking block ends" do
    log = []
    Heddle.run(preempt: :all) do
      Heddle.cancel_after(60, IndexError) do |deadline|
        Thread.handle_interrupt(Exception => :never) do
          deadline.reset(0.001)
          compute_for(0.02)
          log << :through
        end
        loop { Integer.sqrt(2) }
      end
    rescue IndexError
      log << :interrupted
    end
    expect(log).to eq %i[through interrupted]
  end

  # Raises a KeyError in a generator while it computes within a mask and another fiber resumes it. `after` is what the
  # generator then does within the mask, and the block what it does after the mask. Returns what it yields or returns,
  # and whether a report has it then.
  def raise_in_masking_generator(after)
    masking = sent = false
    generator = Fiber.new do
      Thread.handle_interrupt(KeyError => :never) do
        masking = true
        Integer.sqrt(2) until sent
        after.call
      end
      yield
    rescue KeyError
      :interrupted
    end
    consumer = Heddle.spin(background: true) { [generator.resume, Heddle.fibers.map(&:fiber).include?(generator)] }
    pass_until { masking }
    generator.raise(KeyError)
    sent = true
    Heddle.await(consumer)
  end

  it "gets an exception of Fiber#raise when the masking block ends, also if another fiber has resumed it" do
    log = []
    Heddle.run(preempt: :all) do
      result, = raise_in_masking_generator(-> { log << :through }) do
        sleep(0)
        :missed
      end
      log << result
    end
    expect(log).to eq %i[through interrupted]
  end

  it "does not keep its scheduler open if it is a generator that never continues after an exception of Fiber#raise" do
    # On a thread of its own, which keeps the mask that the generator leaves behind.
    left = Thread.new { Heddle.run(preempt: :all) { raise_in_masking_generator(-> { Fiber.yield(:left) }) { nil } } }
    expect(left.value).to eq [:left, false]
  end

  it "is interrupted after Heddle.without_preemption only when the masking block ends" do
    log = []
    Heddle.run(preempt: :all) do
      Heddle.cancel_after(60, IndexError) do |deadline|
        Thread.handle_interrupt(Exception => :never) do
          Heddle.without_preemption { deadline.reset(0.001) && compute_for(0.02) }
          log << :through
        end
        loop { Integer.sqrt(2) }
      end
    rescue IndexError
      log << :interrupted
    end
    expect(log).to eq %i[through interrupted]
  end

  it "is interrupted at once where it masks another class" do
    log = []
    Heddle.run(preempt: :all) do
      Thread.handle_interrupt(KeyError => :never) { log << limited(IOError) }
    end
    expect(log).to eq [:interrupted]
  end

  it "is interrupted at once where an inner block unmasks the exception" do
    log = []
    Heddle.run(preempt: :all) do
      Thread.handle_interrupt(Exception => :never) do
        Thread.handle_interrupt(Exception => :immediate) { log << limited }
      end
    end
    expect(log).to eq [:interrupted]
  end

  it "keeps its mask when another fiber's block ends first" do
    log = []
    Heddle.run do
      mine = Queue.new
      other = Queue.new
      YieldingFiber.schedule do
        Thread.handle_interrupt(KeyError => :never) { other.pop }
        log << :other_ended
        mine.push(true)
      end
      YieldingFiber.schedule do
        Thread.handle_interrupt(IOError => :never) do
          mine.pop
          Timeout.timeout(0.005, IOError) do
            compute_for(0.02)
            log << :through
          end
        end
      rescue IOError
        log << :interrupted
      end
      other.push(true)
    end
    expect(log.first(2)).to eq %i[other_ended through]
  end

  it "has no mask after the block has ended" do
    outcome = Heddle.run(preempt: :all) do
      masked = -> { Thread.handle_interrupt(Exception => :never) { sleep(a_moment) } }
      Heddle.await_all(*Array.new(3) { Heddle.spin(&masked) })
      limited
    end
    expect(outcome).to eq :interrupted
  end

  it "is preempted while an exception waits that the whole thread masks" do
    steps = Queue.new
    raised = Queue.new
    thread = Thread.new do
      Thread.handle_interrupt(IndexError => :never) do
        Heddle.run(preempt: :all) do
          over = false
          cpu_bound = Heddle.spin(background: true) { Integer.sqrt(2) until over }
          steps.push(true)
          raised.pop
          compute_for(0.001) until steps.num_waiting.positive?
          3.times { sleep(a_moment) }
          steps.push(Thread.pending_interrupt?)
          over = true
          Heddle.await(cpu_bound)
        end
      end
    rescue IndexError
      :interrupted_in_the_end
    end
    steps.pop
    thread.raise(IndexError)
    raised.push(true)
    expect([steps.pop, thread.value]).to eq [true, :interrupted_in_the_end]
  end

  it "keeps nested masks while it is preempted again and again" do
    sums = Heddle.run(preempt: :all, quantum: 0.0005, tick: 0.0002) do
      tasks = Array.new(4) do
        Heddle.spin(background: true) do
          30.times.count do
            Thread.handle_interrupt(IndexError => :never) do
              Timeout.timeout(0.0002, IndexError) { compute_for(0.001) || true }
            end
          rescue IndexError
            false
          end
        end
      end
      Heddle.await_all(*tasks)
    end
    expect(sums).to eq [30] * 4
  end

  it "is terminated with its siblings when one of them fails" do
    run = lambda do
      Heddle.run(preempt: :all, quantum: 0.001, tick: 0.0002) do
        masking = Array.new(20) do |number|
          mask = number.even? ? { Exception => :never } : { IndexError => :never }
          Heddle.spin(background: true) do
            loop { Thread.handle_interrupt(mask) { Thread.handle_interrupt(Exception => :immediate) { rand } } }
          end
        end
        failing = Heddle.spin(background: true) do
          compute_for(0.03)
          raise KeyError, "failed"
        end
        Heddle.await_all(*masking, failing)
      end
    end
    expect(&run).to raise_error(KeyError, "failed")
  end

  [:immediate, nil, { IndexError => :now }, {}, { IndexError => :immediate, KeyError => 1 },
   Struct.new(:to_hash).new({ IndexError => :immediate })].each do |mask|
    it "gets what a thread gets for a mask of #{mask.inspect}" do
      outcome = lambda do
        Thread.handle_interrupt(mask) { :run }
      rescue ArgumentError, TypeError => e
        [e.class, e.message]
      end
      in_thread = Thread.new(&outcome).value
      expect(Heddle.run { Heddle.spin(&outcome).await }).to eq in_thread
    end
  end
end
