# frozen_string_literal: true

require "net/http"
require "socket"
require "timeout"

# What happens in a block that takes too long, compared with a plain thread.
RSpec.describe "The time limit of Timeout.timeout" do
  let(:short) { 0.02 }
  let(:long) { 60 }

  # Returns the block's value, or the class and the message of its error, on a plain thread.
  def on_a_thread(&)
    Thread.new { outcome(&) }.value
  end

  def in_a_fiber(**, &)
    Heddle.run(**) { outcome(&) }
  end

  def outcome
    yield
  rescue Exception => e # rubocop:disable Lint/RescueException -- it is what is compared
    [e.class, e.message, e.cause.class]
  end

  # Typical programs, by what the block does with the exception.
  programs = {
    "a rescue" => ->(time) { Timeout.timeout(time) { sleep rescue :rescued } }, # rubocop:disable Style/RescueModifier
    "a rescue of Timeout::Error" => lambda { |time|
      Timeout.timeout(time) do
        sleep
      rescue Timeout::Error
        :rescued
      end
    },
    "a retry, as in Net::HTTP" => lambda { |time|
      tries = 0
      Timeout.timeout(time) do
        sleep
      rescue StandardError
        retry if (tries += 1) < 3
        :rescued
      end
    },
    "a rescue of Exception that returns" => lambda { |time|
      Timeout.timeout(time) do
        sleep
      rescue Exception => e # rubocop:disable Lint/RescueException
        [:rescued, e.class, e.message]
      end
    },
    "a rescue of Exception that raises something else" => lambda { |time|
      Timeout.timeout(time) do
        sleep
      rescue Exception # rubocop:disable Lint/RescueException
        raise KeyError, "other"
      end
    },
    "a rescue of Exception that raises it again" => lambda { |time|
      Timeout.timeout(time) do
        sleep
      rescue Exception # rubocop:disable Lint/RescueException
        sleep(a_moment)
        raise
      end
    },
    "an ensure that waits" => lambda { |time|
      Timeout.timeout(time) do
        sleep
      ensure
        sleep(time * 2)
      end
    },
    "an ensure that has a limit of its own" => lambda { |time|
      Timeout.timeout(time) do
        sleep
      ensure
        begin
          Timeout.timeout(time) { sleep }
        rescue Timeout::Error
          sleep(time)
        end
      end
    },
    "an inner limit that comes first" => lambda { |time|
      Timeout.timeout(60) do
        Timeout.timeout(time) { sleep }
      rescue Timeout::Error => e
        [:rescued, e.message]
      end
    },
    "an inner limit that would come later" => lambda { |time|
      Timeout.timeout(time) do
        Timeout.timeout(60) { sleep }
      rescue Timeout::Error
        :rescued
      end
    },
    "a class" => lambda { |time|
      Timeout.timeout(time, KeyError) do
        sleep
      rescue KeyError => e
        [:rescued, e.message]
      end
    },
    "the class Timeout::Error" => lambda { |time|
      Timeout.timeout(time, Timeout::Error) do
        sleep
      rescue Timeout::Error => e
        [:rescued, e.message]
      end
    },
    "a class that is rescued, whereupon the block waits" => lambda { |time|
      Timeout.timeout(time, Timeout::Error) do
        begin
          sleep
        rescue Timeout::Error
          :rescued
        end
        sleep(time) && :slept
      end
    },
    "a subclass of Timeout::Error" => ->(time) { Timeout.timeout(time, Net::OpenTimeout) { sleep } },
    "an exception" => ->(time) { Timeout.timeout(time, KeyError.new("mine")) { sleep } },
    "an exception that is no StandardError" => lambda { |time|
      Timeout.timeout(time, NotImplementedError.new("mine")) { sleep }
    },
    "a message" => ->(time) { Timeout.timeout(time, nil, "late") { sleep } },
    "a class and a message" => ->(time) { Timeout.timeout(time, KeyError, "late") { sleep } },
    "a Timeout that is included" => lambda { |time|
      Object.new.extend(Timeout).instance_eval do
        timeout(time) { sleep rescue :rescued } # rubocop:disable Style/RescueModifier
      end
    }
  }

  programs.each do |name, program|
    it "with #{name} behaves as on a plain thread" do
      expect(in_a_fiber { program.call(short) }).to eq(on_a_thread { program.call(short) })
    end

    it "with #{name} behaves under preempt: :all as on a plain thread" do
      expect(in_a_fiber(preempt: :all, tick: 0.0001) { program.call(short) }).to eq(on_a_thread { program.call(short) })
    end
  end

  {
    "0" => 0, "nil" => nil, "infinity" => Float::INFINITY, "NaN" => Float::NAN, "a huge Integer" => 10**30,
    "a Rational" => 1000r, "a String" => "1", "an Object" => Object.new
  }.each do |name, time|
    it "of #{name} behaves as on a plain thread" do
      limited = -> { outcome { Timeout.timeout(time) { |given| [:done, given.equal?(time)] } } }
      # With these, the timeout thread of plain Ruby uses the CPU without end.
      expected = %w[infinity NaN].include?(name) ? [:done, true] : Thread.new(&limited).value
      found = Heddle.run(&limited)

      expect(found.is_a?(Array) ? found.first : found).to eq(expected.is_a?(Array) ? expected.first : expected)
    end
  end

  it "of a negative number behaves as on a plain thread" do
    program = -> { Timeout.timeout(-1) { sleep } }

    expect(in_a_fiber(&program)).to eq(on_a_thread(&program))
  end

  it "of an object that can only be added to a number works" do
    duration = Struct.new(:value) do
      def zero? = value.zero?
      def coerce(other) = [other, value]
    end
    program = -> { Timeout.timeout(duration.new(short)) { sleep(long) } }

    expect(in_a_fiber(&program)).to eq([Timeout::Error, "execution expired", Timeout::ExitException])
  end

  it "has a cause with the backtrace of the wait" do
    place = nil
    line = __LINE__ + 3
    attempt = lambda do
      Timeout.timeout(short) do
        sleep
      end
    end

    expect { Heddle.run(&attempt) }.to(raise_error(Timeout::Error) { |error| place = error.cause.backtrace.first })
    expect(place).to start_with("#{__FILE__}:#{line}:")
  end

  it "is not lost in Net::HTTP, which retries" do
    server = TCPServer.new("127.0.0.1", 0)
    requests = 0
    served = Thread.new do
      loop { server.accept.tap { requests += 1 } }
    rescue IOError
      requests
    end
    attempt = lambda do
      Heddle.run { Timeout.timeout(0.1) { Net::HTTP.get(URI("http://127.0.0.1:#{server.local_address.ip_port}/")) } }
    end

    expect(&attempt).to raise_error(Timeout::Error, "execution expired")
  ensure
    server.close
    served.join
  end

  it "is raised again at the next wait of a block that swallows it" do
    swallowed = 0
    attempt = lambda do
      virtually do
        Timeout.timeout(short) do
          swallowed = swallow_in_sleep(1)
          sleep
        end
      end
    end

    expect(&attempt).to raise_error(Timeout::Error)
    expect(swallowed).to eq(1)
  end

  it "is raised again in a block that swallows it in the rescue of another error" do
    swallowed = 0
    virtually do
      Timeout.timeout(short) do
        raise IOError
      rescue IOError
        loop do
          sleep
        rescue Exception # rubocop:disable Lint/RescueException
          swallowed += 1
          raise if swallowed == 3
        end
      end
    rescue Timeout::Error
      :over
    end

    expect(swallowed).to eq(3)
  end

  it "is not raised again after the block" do
    value = virtually do
      Timeout.timeout(short) do
        sleep
      rescue Exception # rubocop:disable Lint/RescueException
        :rescued
      end
      sleep(short) && :undisturbed
    end

    expect(value).to eq(:undisturbed)
  end

  it "lets other fibers run while a block swallows it again and again" do
    runs = 0
    virtually do
      fiber = Heddle.spin(background: true) do
        Timeout.timeout(short) do
          loop do
            sleep
          rescue Exception # rubocop:disable Lint/RescueException
            break if runs > 20
          end
        end
      end
      while fiber.alive?
        sleep(1)
        runs += 1
      end
    end

    expect(runs).to be > 20
  end

  it "leaves no timer behind" do
    counts = nil
    virtually do
      counts = -> { state_counts }
      before = counts.call
      begin
        Timeout.timeout(short) do
          swallow_in_sleep(1)
          sleep
        end
      rescue Timeout::Error
        counts = [before, counts.call]
      end
    end

    expect(counts[1]).to eq(counts[0])
  end

  it "is raised again in a CPU-bound block that swallows it" do
    raised = []
    program = -> { Timeout.timeout(short) { compute_until_raised(raised, 3) } }

    expect(in_a_fiber(preempt: :all, &program).first).to eq(Timeout::Error)
    expect(raised.size).to eq(3)
  end

  it "doesn't interrupt a CPU-bound ensure" do
    computed = false
    program = lambda do
      Timeout.timeout(short) do
        loop { Integer.sqrt(2) }
      ensure
        compute_for(0.1)
        sleep(a_moment)
        computed = true
      end
    end

    expect(in_a_fiber(preempt: :all, &program).first).to eq(Timeout::Error)
    expect(computed).to be(true)
  end

  it "works with a version of timeout without Timeout::Error.handle_timeout" do
    output, errors, = run_ruby(<<~RUBY)
      require "timeout"
      Timeout::Error.singleton_class.undef_method(:handle_timeout)
      require "heddle"
      Heddle.run do
        Timeout.timeout(0.01) { sleep rescue puts("rescued") }
      rescue Timeout::Error => e
        puts e.message
      end
    RUBY

    expect([output, errors]).to eq(["execution expired\n", ""])
  end

  it "works for a caller of the hook that passes an exception, as timeout 0.6.1 does" do
    exit = Class.new(Exception) { def exception(*) = self } # rubocop:disable Lint/InheritException
    limit = exit.new("over")
    swallowed = 0
    attempt = lambda do
      virtually do
        Fiber.scheduler.timeout_after(short, limit, "over") do
          swallowed = swallow_in_sleep(1)
          sleep
        end
      end
    end

    expect(&attempt).to(raise_error { |error| expect(error).to equal(limit) })
    expect(swallowed).to eq(1)
  end
end
