# frozen_string_literal: true

RSpec.describe "An error that no rescue handles" do
  it "is reported in the format of a thread's error" do
    text = captured_stderr { Heddle.run { Fiber.schedule { raise KeyError, "lost" } } }

    expect(text).to match(
      /\A#<Fiber:0x\h+ \S+unhandled_errors_spec\.rb:\d+.*> terminated with exception \(report_on_exception is true\):\n/
    )
  end

  it "is reported with its message, its class and where it was raised" do
    text = captured_stderr { Heddle.run { Fiber.schedule { raise KeyError, "lost" } } }

    expect(text).to match(/unhandled_errors_spec\.rb:#{__LINE__ - 2}:in .*: lost \(KeyError\)/)
  end

  it "is reported with its cause" do
    text = captured_stderr do
      Heddle.run do
        Fiber.schedule do
          raise KeyError, "lost"
        rescue KeyError
          raise IOError, "consequence"
        end
      end
    end

    expect(text).to match(/consequence \(IOError\).*lost \(KeyError\)/m)
  end

  it "is reported to the stderr of a fresh Ruby" do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      Heddle.run do
        Fiber.schedule { raise "lost" }
        puts "goes on"
      end
    RUBY

    expect([output, errors[/lost \(RuntimeError\)/], status.success?]).to eq(["goes on\n", "lost (RuntimeError)", true])
  end

  it "is reported when it comes after the fiber has waited" do
    text = captured_stderr do
      virtually do
        Fiber.schedule do
          sleep(1)
          raise "late"
        end
      end
    end

    expect(text).to include("late (RuntimeError)")
  end

  it "lets the other fibers continue" do
    finished = []
    captured_stderr do
      virtually do
        3.times do |i|
          Fiber.schedule do
            sleep(1)
            raise "lost" if i == 1

            finished << i
          end
        end
      end
    end

    expect(finished).to eq([0, 2])
  end

  it "lets the fiber that scheduled the failing one continue, even if the error comes at once" do
    value = nil
    captured_stderr do
      value = Heddle.run do
        Fiber.schedule { raise "at once" }
        :goes_on
      end
    end

    expect(value).to eq(:goes_on)
  end

  it "runs the fiber's ensure" do
    ensured = false
    captured_stderr do
      virtually do
        Fiber.schedule do
          raise "lost"
        ensure
          sleep(1)
          ensured = true
        end
      end
    end

    expect(ensured).to be(true)
  end

  it "is reported once for each fiber" do
    text = captured_stderr { Heddle.run { 5.times { |i| Fiber.schedule { raise "number #{i}" } } } }

    expect(text.scan(/number \d \(RuntimeError\)/)).to eq(Array.new(5) { |i| "number #{i} (RuntimeError)" })
  end

  it "is reported when it isn't a StandardError" do
    text = captured_stderr { Heddle.run { Fiber.schedule { raise NotImplementedError, "some day" } } }

    expect(text).to include("some day (NotImplementedError)")
  end

  it "is reported when it is an uncaught throw" do
    text = captured_stderr { Heddle.run { Fiber.schedule { throw :ball } } }

    expect(text).to match(/uncaught throw :ball \(UncaughtThrowError\)/)
  end

  it "isn't reported when the fiber rescues it" do
    text = captured_stderr do
      Heddle.run do
        Fiber.schedule do
          raise "taken"
        rescue RuntimeError
          nil
        end
      end
    end

    expect(text).to eq("")
  end

  it "isn't reported when it is raised by the block of Heddle.run, which raises it again" do
    text = captured_stderr do
      Heddle.run { raise "taken" }
    rescue RuntimeError
      nil
    end

    expect(text).to eq("")
  end

  it "isn't reported when the fiber was killed" do
    text = captured_stderr do
      Heddle.run do
        fiber = Fiber.schedule { sleep }
        fiber.kill
      end
    end

    expect(text).to eq("")
  end

  it "isn't reported in a thread whose report_on_exception is false" do
    text = captured_stderr do
      Thread.new do
        Thread.current.report_on_exception = false
        Heddle.run { Fiber.schedule { raise "unheard" } }
      end.join
    end

    expect(text).to eq("")
  end

  it "isn't reported in a thread that began when Thread.report_on_exception was false" do
    before = Thread.report_on_exception
    text = captured_stderr do
      Thread.report_on_exception = false
      Thread.new { Heddle.run { Fiber.schedule { raise "unheard" } } }.join
    end

    expect(text).to eq("")
  ensure
    Thread.report_on_exception = before
  end

  it "runs an ensure that closes a Queue, so that no fiber waits for ever" do
    value = nil
    captured_stderr do
      value = Heddle.run do
        queue = Queue.new
        Fiber.schedule do
          raise "lost"
        ensure
          queue.close
        end
        queue.pop
      end
    end

    expect(value).to be_nil
  end

  it "survives a $stderr that raises" do
    value = nil
    before = $stderr
    begin
      $stderr = Class.new { def write(*) = raise(IOError, "no stderr") }.new
      value = Heddle.run do
        Fiber.schedule { raise "lost" }
        until_others_wait
        :goes_on
      end
    ensure
      $stderr = before
    end

    expect(value).to eq(:goes_on)
  end

  describe "where Thread.abort_on_exception is true" do
    # Prints what `work` prints, and what Heddle.run raises.
    def output_of(work)
      output, = run_ruby(<<~RUBY)
        require "heddle"
        $stdout.sync = true
        Thread.abort_on_exception = true
        begin
          Heddle.run do
            #{work}
            begin; sleep; ensure; puts "block"; end
          end
        rescue KeyError, IOError => e
          puts "Heddle.run raises \#{e.message}"
        end
        puts "no scheduler" unless Fiber.scheduler
      RUBY
      output.lines(chomp: true)
    end

    {
      "a fiber at once" => 'Fiber.schedule { raise KeyError, "lost" }',
      "a fiber that has waited" => 'Fiber.schedule { sleep(0); raise KeyError, "lost" }',
      "a thread" => 'Thread.new { raise KeyError, "lost" }'
    }.each do |what, work|
      it "stops the fibers, and is raised by Heddle.run, if it ends #{what}", :regression do
        other = 'Fiber.schedule { begin; sleep; ensure; puts "other"; end }'

        expect(output_of("#{other}\n#{work}")).to contain_exactly(
          "other", "block", "Heddle.run raises lost", "no scheduler"
        )
      end
    end

    it "lets the fibers that it stops run their ensure, although one of those raises, too" do
      output = output_of(<<~RUBY)
        Fiber.schedule { begin; sleep; ensure; raise IOError, "second"; end }
        Fiber.schedule { begin; sleep; ensure; sleep(0); puts "other"; end }
        Fiber.schedule { raise KeyError, "first" }
      RUBY

      expect(output).to contain_exactly("other", "block", /raises (first|second)/, "no scheduler")
    end
  end
end
