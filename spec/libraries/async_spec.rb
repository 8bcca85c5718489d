# frozen_string_literal: true

RSpec.describe "YieldingFiber under Async" do
  include Libraries

  let(:library) { "async" }

  {
    "on the main thread" => "def here = yield",
    "on another thread" => "def here(&) = Thread.new(&).join"
  }.each do |place, here|
    describe place do
      # The program passes a block to `here`, which runs it on the thread in question.
      let(:preamble) { "#{here}\n" }

      it "lets tasks run if it was pushed to the scheduler, as in the article" do
        expect(printed(<<~RUBY)).to eq "other\ncpu_bound\n"
          here do
            Async do
              other = nil
              # The fiber is no task, so Async doesn't wait for it.
              cpu_bound = YieldingFiber.new do
                Integer.sqrt(2) until other
                puts "cpu_bound"
              end
              Fiber.scheduler.push(cpu_bound)
              Async do
                sleep(a_moment)
                puts other = "other"
              end
              sleep(0.001) while cpu_bound.alive?
            end
          end
        RUBY
      end

      it "lets tasks run if it is scheduled" do
        expect(printed(<<~RUBY)).to eq "other\ncpu_bound\n"
          here do
            Async do
              other = nil
              YieldingFiber.schedule do
                Integer.sqrt(2) until other
                puts "cpu_bound"
              end
              puts other = "other"
            end
          end
        RUBY
      end

      it "lets a sleeper wake while several compute" do
        expect(printed(<<~RUBY)).to eq "woken\n" * 3
          here do
            Async do
              woken = nil
              Async do
                sleep(a_moment)
                woken = "woken"
              end
              3.times do
                YieldingFiber.schedule do
                  Integer.sqrt(2) until woken
                  puts woken
                end
              end
            end
          end
        RUBY
      end

      it "is kept from yielding by Heddle.without_preemption" do
        expect(printed(<<~RUBY)).to eq "cpu_bound\nother\n"
          def seconds = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)

          here do
            Async do
              YieldingFiber.schedule do
                Heddle.without_preemption do
                  enough = seconds + 0.05
                  nil until seconds > enough
                  puts "cpu_bound"
                end
              end
              puts "other"
            end
          end
        RUBY
      end
    end
  end
end

RSpec.describe "Async on a thread with Heddle's scheduler" do
  include Libraries

  let(:library) { "async" }

  { "Async" => "Async { puts 1 }", "Sync" => "Sync { puts 1 }" }.each do |name, call|
    it "raises from #{name} an error that names the alternative" do
      expect(printed(<<~RUBY)).to match(%r{\ARuntimeError: Async's tasks.*"heddle/async".*Thread\.new})
        Heddle.run do
          #{call}
        rescue => e
          puts "\#{e.class}: \#{e.message}"
        end
      RUBY
    end
  end

  it "works in a thread of its own, while fibers continue" do
    expect(printed(<<~RUBY)).to eq "fiber\ntask\n"
      Heddle.run do
        gate = Queue.new
        Fiber.schedule { sleep(a_moment); puts "fiber"; gate << true }
        Thread.new { Async { gate.pop; puts "task" } }.join
      end
    RUBY
  end
end
