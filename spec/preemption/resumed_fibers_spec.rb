# frozen_string_literal: true

RSpec.describe "A fiber that a yielding fiber resumes" do
  # The block computes, in some fiber that a yielding fiber has resumed, until another fiber has run.
  nestings = {
    "an Enumerator" => ->(work) { Enumerator.new { |yielder| yielder << work.call }.next },
    "an Enumerator of an Enumerator" => lambda { |work|
      inner = Enumerator.new { |yielder| yielder << work.call }
      Enumerator.new { |yielder| yielder << inner.next }.next
    },
    "an Enumerator::Lazy" => ->(work) { (1..).lazy.map { work.call }.first },
    "an Enumerator that is zipped" => ->(work) { [1].each.zip(Enumerator.new { |yielder| yielder << work.call }.lazy) },
    "a Fiber" => ->(work) { Fiber.new { work.call }.resume },
    "a Fiber in a Fiber in a Fiber" => lambda { |work|
      Fiber.new { Fiber.new { Fiber.new { work.call }.resume }.resume }.resume
    },
    "a YieldingFiber" => ->(work) { YieldingFiber.new { work.call }.resume },
    "a generator that has yielded once" => lambda { |work|
      fiber = Fiber.new do
        Fiber.yield
        work.call
      end
      2.times { fiber.resume }
    },
    "a generator that has waited once" => lambda { |work|
      Enumerator.new do |yielder|
        sleep(a_moment)
        yielder << work.call
      end.next
    },
    "a generator that waits between its values" => lambda { |work|
      numbers = Enumerator.new do |yielder|
        3.times do
          yielder << work.call
          sleep(0)
        end
      end
      3.times { numbers.next }
    },
    "the block that runs once its generator has waited" => lambda { |work|
      Enumerator.new do |yielder|
        sleep(a_moment)
        yielder << 1
      end.next
      work.call
    },
    "the block between two values" => lambda { |work|
      numbers = [1, 2].each
      numbers.next
      work.call
      numbers.next
    }
  }.freeze

  # The fiber computes until another fiber has run, which waits for it to compute. Returns the number of preemptions.
  def compute(nesting, fiber_class)
    begun = done = ended = false
    fiber_class.schedule do
      nesting.call(lambda {
        begun = true
        nil until done
      })
      ended = true
    end
    sleep(0) until begun
    done = true
    sleep(0) until ended
    Fiber.scheduler.stats[:run_queue][:preemptions_count]
  end

  Selection.tickers.each do |ticker|
    nestings.each do |name, nesting|
      it "is preempted with it: #{name}, with the ticker #{ticker}" do
        expect(Heddle.run(ticker:) { compute(nesting, YieldingFiber) }).to be >= 1
      end

      it "is preempted with it on another thread: #{name}, with the ticker #{ticker}" do
        expect(Thread.new { Heddle.run(ticker:) { compute(nesting, YieldingFiber) } }.value).to be >= 1
      end

      it "is preempted with any fiber under preempt: :all: #{name}, with the ticker #{ticker}" do
        expect(Heddle.run(ticker:, preempt: :all) { compute(nesting, Fiber) }).to be >= 1
      end
    end

    it "yields its values in order while many other fibers do the same, with the ticker #{ticker}" do
      sums = []
      Heddle.run(ticker:, quantum: 0.0002, tick: 0.0001) do
        10.times do
          YieldingFiber.schedule do
            numbers = Enumerator.new { |yielder| 200.times { |number| yielder << (1..50).sum { number } } }
            sums << Array.new(200) { numbers.next }.sum
          end
        end
      end
      expect(sums).to eq [50 * 199 * 100] * 10
    end

    # Ways in which two fibers pass values to each other. Each pair of fibers returns the number of lost values.
    exchanges = {
      "Fiber#resume and Fiber.yield" => lambda { |times|
        lost = 0
        fiber = Fiber.new { |given| loop { lost += 1 unless (given = Fiber.yield(given)) == :given } }
        times.times { lost += 1 unless fiber.resume(:given) == :given }
        lost
      },
      "Fiber#transfer" => lambda { |times|
        lost = 0
        here = Fiber.current
        fiber = Fiber.new { |given| loop { lost += 1 unless (given = here.transfer(given)) == :given } }
        times.times { lost += 1 unless fiber.transfer(:given) == :given }
        lost
      },
      "Enumerator#next" => lambda { |times|
        numbers = (0..).each
        times.times.count { |number| numbers.next != number }
      },
      "Fiber#raise" => lambda { |times|
        rescued = 0
        fiber = Fiber.new do
          Fiber.yield
        rescue KeyError
          rescued += 1
          retry
        end
        fiber.resume
        times.times { fiber.raise(KeyError) }
        times - rescued
      }
    }.freeze

    exchanges.each do |name, exchange|
      it "loses no value that is passed with #{name}, with the ticker #{ticker}" do
        lost = Heddle.run(ticker:, quantum: 0.0001, tick: 0.0001) do
          found = nil
          YieldingFiber.schedule do
            found = 0
            # Each call makes a fiber. Long calls make few: their stacks are garbage that Ruby does not count.
            preemptions = -> { Fiber.scheduler.stats[:run_queue][:preemptions_count] }
            found += exchange.call(10_000) while found.zero? && preemptions.call < 300
            found = [found]
          end
          sleep(0) until found.is_a?(Array)
          found
        end
        expect(lost).to eq [0]
      end
    end

    it "may be abandoned before its end, with the ticker #{ticker}" do
      ended = Heddle.run(ticker:) do
        done = false
        given_up = nil
        fiber = YieldingFiber.schedule do
          given_up = Fiber.new { Fiber.yield until done }
          given_up.resume until done
          given_up = nil
          GC.start
          :ended
        end
        done = true
        sleep(0) while fiber.alive?
        fiber.alive?
      end
      expect(ended).to be false
    end

    it "is preempted though another fiber started the generator, with the ticker #{ticker}" do
      found = Heddle.run(ticker:) do
        done = false
        numbers = Fiber.new do
          Fiber.yield(:first)
          nil until done
          :second
        end
        found = [numbers.resume]
        YieldingFiber.schedule { found << numbers.resume }
        found << :other
        done = true
        sleep(0) until found.size == 3
        found
      end
      expect(found).to eq %i[first other second]
    end
  end
end
