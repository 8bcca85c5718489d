# frozen_string_literal: true

RSpec.describe "Structured concurrency" do
  # Runs the block in a fiber beside another fiber, which must not be affected.
  def within
    fine = nil
    Heddle.run do
      other = Heddle.spin { sleep(a_moment) && :fine }
      yield
    ensure
      fine = Heddle.await_all(other)
    end
  ensure
    expect(fine).to eq([:fine])
  end

  describe "given a time" do
    methods = {
      "Heddle.every" => ->(time) { Heddle.every(time) { break } },
      "Heddle.after" => ->(time) { Heddle.after(time) { nil } },
      "Heddle.cancel_after" => ->(time) { Heddle.cancel_after(time) { nil } },
      "Heddle.move_on_after" => ->(time) { Heddle.move_on_after(time) { nil } },
      "Heddle::Semaphore#acquire" => ->(time) { Heddle::Semaphore.new.acquire(timeout: time) }
    }
    methods.each do |name, call|
      [-1, -0.5, Float::NAN, Float::INFINITY, -Float::INFINITY].each do |time|
        it "of #{time} raises ArgumentError from #{name}" do
          expect { within { call.call(time) } }
            .to raise_error(ArgumentError, /\A#{name}: seconds must be finite and not negative, not #{time}/)
        end
      end

      ["1", :soon, Complex(1, 1)].each do |time|
        it "of #{time.inspect} raises TypeError from #{name}" do
          expect do
            within do
              call.call(time)
            end
          end.to raise_error(TypeError, /\A#{name}: seconds must be .*#{Regexp.escape(time.inspect)}/)
        end
      end
    end
  end

  describe "called without a block" do
    threads = Heddle::ThreadPool.new
    {
      "Heddle.run" => -> { Thread.new { Heddle.run }.tap { |t| t.report_on_exception = false }.value },
      "Heddle.spin" => -> { Heddle.spin },
      "Heddle.every" => -> { Heddle.every(1) },
      "Heddle.after" => -> { Heddle.after(1) },
      "Heddle.cancel_after" => -> { Heddle.cancel_after(1) },
      "Heddle.move_on_after" => -> { Heddle.move_on_after(60) },
      "Heddle.shield" => -> { Heddle.shield },
      "Heddle::Barrier#spin" => -> { Heddle::Barrier.new.spin },
      "Heddle.map" => -> { Heddle.map([1]) },
      "Heddle::ThreadPool#process" => -> { threads.process }
    }.each do |name, call|
      it "raises from #{name}" do
        expect { within(&call) }.to raise_error(ArgumentError, "#{name} needs a block")
      end
    end
  end

  describe "given a fiber" do
    # The message names the fiber.
    def refuse(fiber, method)
      raise_error(FiberError) { |error| expect(error.message).to start_with("#{method}: #{fiber.inspect}") }
    end

    it "that is the caller refuses to await it" do
      within do
        current = Fiber.current
        %i[await await_all].each do |method|
          expect { Heddle.public_send(method, current) }.to refuse(current, "Heddle.#{method}")
        end
      end
    end

    it "that is dead and whose value was not kept refuses to await it" do
      within do
        dead = Fiber.new { nil }.tap(&:resume)
        expect { Heddle.await(dead) }.to refuse(dead, "Heddle.await")
      end
    end

    it "that was never scheduled refuses to await or stop it" do
      within do
        stranger = Fiber.new { nil }
        %i[await await_all stop].each do |method|
          expect { Heddle.public_send(method, stranger) }.to refuse(stranger, "Heddle.#{method}")
        end
      end
    end

    it "of another thread refuses to await or stop it, and lets it continue" do
      fibers = Queue.new
      gate = Queue.new
      thread = Thread.new do
        Heddle.run { Heddle.await_all(Heddle.spin { fibers.push(Fiber.current) && gate.pop }) }
      end
      foreign = fibers.pop
      within do
        %i[await await_all stop].each do |method|
          expect { Heddle.public_send(method, foreign) }.to refuse(foreign, "Heddle.#{method}")
        end
      end
      gate.push(:went_on)

      expect(thread.value).to eq([:went_on])
    end

    it "that is a root fiber refuses to stop it" do
      with_scheduler do
        root = Fiber.current
        child = Heddle.spin { expect { Heddle.stop(root) }.to refuse(root, "Heddle.stop") }
        Heddle.await(child)
      end
    end

    it "that waits at its end for the caller refuses to await it" do
      within do
        parent = Heddle.spin { Heddle.spin { expect { parent.await }.to refuse(parent, "Heddle.await") }.await }
        parent.await
      end
    end

    it "that is another object raises TypeError" do
      within do
        %i[await await_all stop state].each do |method|
          expect do
            Heddle.public_send(method, :fiber)
          end.to raise_error(TypeError, "Heddle.#{method}: :fiber is not a Fiber")
        end
      end
    end
  end

  it "refuses an object that can't be raised as an error" do
    [42, String, nil, "too late"].each do |error|
      expect { within { Heddle.cancel_after(1, error) { nil } } }.to raise_error(TypeError, /#{error.inspect}/)
    end
  end

  it "refuses objects that are no sizes" do
    makers = [
      ->(size) { Heddle::Semaphore.new(size) }, ->(size) { Heddle::ThreadPool.new(threads: size) },
      ->(size) { Heddle.map([], limit: size) { nil } }
    ]
    makers.each do |make|
      expect { make.call(0) }.to raise_error(ArgumentError, /an Integer of at least 1, not 0/)
      expect { make.call(1.5) }.to raise_error(TypeError, /an Integer of at least 1, not 1\.5/)
    end
  end
end
