# frozen_string_literal: true

RSpec.describe "The end" do
  # Returns the output and the exit status.
  def result_of(source)
    output, _errors, status = run_ruby(%(require "heddle"\n$stdout.sync = true\n#{source}))
    [output, status.exitstatus]
  end

  describe "of a program" do
    it "comes when every fiber has ended" do
      expect(result_of(<<~RUBY)).to eq ["main\nfiber\n", 0]
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { sleep(a_moment); puts "fiber" }
        puts "main"
      RUBY
    end

    it "by exit in the main fiber lets the fibers run to their end" do
      expect(result_of(<<~RUBY)).to eq ["fiber\n", 4]
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { sleep(a_moment); puts "fiber" }
        exit 4
      RUBY
    end

    it "by exit in a fiber stops the other fibers, which run their ensure" do
      expect(result_of(<<~RUBY)).to eq ["own\nother\n", 3]
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { begin; sleep; ensure; puts "other"; end }
        Fiber.schedule { begin; sleep(a_moment); exit(3); ensure; puts "own"; end }
      RUBY
    end

    it "by exit in an ensure clause of a fiber stops the other fibers" do
      expect(result_of(<<~RUBY)).to eq ["other\n", 3]
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { begin; sleep; ensure; puts "other"; end }
        Fiber.schedule { begin; sleep(a_moment); ensure; exit(3); end }
      RUBY
    end

    it "by exit in two fibers lets each run its ensure" do
      expect(result_of(<<~RUBY)).to eq ["second\nthird\n", 4]
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { sleep(a_moment); exit(3) }
        Fiber.schedule { begin; sleep; ensure; puts "second"; exit(4); end }
        Fiber.schedule { begin; sleep; ensure; sleep(a_moment); puts "third"; end }
      RUBY
    end

    it "by exit in a fiber of Heddle.run stops its block" do
      expect(result_of(<<~RUBY)).to eq ["block\n", 3]
        Heddle.run do
          Fiber.schedule { sleep(a_moment); exit(3) }
          begin; sleep; ensure; puts "block"; end
        end
        puts "not reached"
      RUBY
    end

    it "by exit in a fiber is a SystemExit that Heddle.run raises" do
      expect(result_of(<<~RUBY)).to eq ["rescued 3\n", 0]
        begin
          Heddle.run { Fiber.schedule { exit(3) } }
        rescue SystemExit => e
          puts "rescued \#{e.status}"
        end
      RUBY
    end

    it "by exit! in a fiber comes at once" do
      expect(result_of(<<~RUBY)).to eq ["", 5]
        Heddle.run do
          Fiber.schedule { begin; sleep(a_moment); ensure; puts "ensured"; end }
          exit!(5)
        end
      RUBY
    end

    it "by abort in a fiber has its message and status" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        $stdout.sync = true
        Heddle.run do
          Fiber.schedule { begin; sleep; ensure; puts "other"; end }
          Fiber.schedule { abort("aborted") }
        end
      RUBY
      expect([output, errors, status.exitstatus]).to match ["other\n", /^aborted$/, 1]
    end

    it "by an error in the main fiber lets the fibers run to their end" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        $stdout.sync = true
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { sleep(a_moment); puts "fiber" }
        raise "of main"
      RUBY
      expect([output, errors, status.exitstatus]).to match ["fiber\n", /of main \(RuntimeError\)/, 1]
    end

    it "isn't caused by an error in a fiber, which is reported" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        $stdout.sync = true
        Heddle.run do
          Fiber.schedule { raise "of a fiber" }
          Fiber.schedule { sleep(a_moment); puts "other" }
        end
        puts "after"
      RUBY
      expect([output, errors, status.exitstatus]).to match ["other\nafter\n", /of a fiber \(RuntimeError\)/, 0]
    end

    it "runs at_exit blocks after the fibers, without a scheduler" do
      expect(result_of(<<~RUBY)).to eq ["fiber\nnil\n", 0]
        at_exit { p Fiber.scheduler }
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { sleep(a_moment); puts "fiber" }
      RUBY
    end

    it "lets an at_exit block run fibers" do
      expect(result_of(<<~RUBY)).to eq ["at exit\n", 0]
        at_exit { Heddle.run { sleep(a_moment); puts "at exit" } }
      RUBY
    end

    it "cancels the fibers of other threads, and runs their ensure" do
      expect(result_of(<<~RUBY)).to eq ["ensured\n", 0]
        ready = Queue.new
        Thread.new do
          Heddle.run do
            begin
              ready.push(true)
              sleep(60)
            ensure
              puts "ensured"
            end
          end
        end
        ready.pop
      RUBY
    end

    it "comes after fibers that end late" do
      expect(result_of(<<~RUBY)).to eq ["late\n", 0]
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule do
          sleep(a_moment)
          Fiber.schedule { sleep(a_moment); Fiber.schedule { sleep(a_moment); puts "late" } }
        end
      RUBY
    end
  end

  describe "of a thread" do
    it "comes when its fibers have ended" do
      events = []
      thread = scheduled_thread do
        Fiber.schedule do
          sleep(a_moment)
          events << :fiber
        end
        events << :root
        :value
      end
      expect([thread.value, events]).to eq [:value, %i[root fiber]]
    end

    it "by an error lets its fibers run to their end" do
      events = []
      thread = scheduled_thread do
        Fiber.schedule do
          sleep(a_moment)
          events << :fiber
        end
        raise "of the thread"
      end
      expect { thread.join }.to raise_error("of the thread")
      expect(events).to eq [:fiber]
    end

    it "doesn't wait for the fibers of other threads" do
      gate = Queue.new
      others = scheduled_thread { Fiber.schedule { gate.pop } }
      ended = scheduled_thread { Fiber.schedule { sleep(a_moment) } }.join(60)
      gate.push(:open)
      others.join
      expect(ended).to be_a Thread
    end

    it "by exit in a fiber stops its other fibers" do
      expect(result_of(<<~RUBY)).to eq ["other\n", 6]
        thread = Thread.new do
          Fiber.set_scheduler(Heddle::Scheduler.new)
          Fiber.schedule { begin; sleep; ensure; puts "other"; end }
          Fiber.schedule { sleep(a_moment); exit(6) }
        end
        thread.join
      RUBY
    end
  end

  describe "of a scheduler" do
    it "by set_scheduler(nil) comes when its fibers have ended" do
      events = []
      Thread.new do
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule do
          sleep(a_moment)
          events << :fiber
        end
        Fiber.set_scheduler(nil)
        events << Fiber.scheduler
      end.join
      expect(events).to eq [:fiber, nil]
    end

    it "by set_scheduler(other) comes before the other one begins" do
      events = []
      second = Heddle::Scheduler.new
      current = with_scheduler do
        Fiber.schedule do
          sleep(a_moment)
          events << :first
        end
        Fiber.set_scheduler(second)
        Fiber.schedule do
          sleep(a_moment)
          events << :second
        end
        events << :root
        Fiber.scheduler
      end
      expect([events, current]).to eq [%i[first root second], second]
    end

    it "by Heddle.run's block leaves the thread without a scheduler" do
      expect([Heddle.run { Fiber.scheduler.class }, Fiber.scheduler]).to eq [Heddle::Scheduler, nil]
    end

    it "by an error of Heddle.run's block comes when its fibers have ended" do
      events = []
      expect do
        Heddle.run do
          Fiber.schedule do
            sleep(a_moment)
            events << :fiber
          end
          raise "of the block"
        end
      end.to raise_error("of the block")
      expect([events, Fiber.scheduler]).to eq [[:fiber], nil]
    end

    it "by a second close is no error" do
      scheduler = with_scheduler do |own|
        own.close
        own
      end
      expect { scheduler.close }.not_to raise_error
    end

    it "doesn't affect the schedulers of other threads" do
      totals = Array.new(3) do
        Thread.new do
          Heddle.run do
            sums = []
            10.times { |item| Fiber.schedule { sums << item.tap { sleep(a_moment) } } }
            pass_until { sums.size == 10 }
            sums.sum
          end
        end
      end
      expect(totals.map(&:value)).to eq [45, 45, 45]
    end

    it "may come while a fiber of another thread's scheduler waits for it" do
      values = Heddle.run do
        Array.new(3) { |number| Thread.new { Heddle.run { number.tap { sleep(a_moment) } } } }.map(&:value)
      end
      expect(values).to eq [0, 1, 2]
    end

    it "lets the same thread have another scheduler" do
      values = Array.new(20) { |number| Heddle.run { number.tap { sleep(a_moment) } } }
      expect(values).to eq [*0...20]
    end
  end
end
