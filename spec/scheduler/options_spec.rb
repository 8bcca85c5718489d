# frozen_string_literal: true

RSpec.describe Heddle::Scheduler do
  describe ".new" do
    %i[auto poll].each do |backend|
      it "accepts backend: #{backend.inspect}" do
        expect(%i[io_uring poll]).to include(described_class.new(backend:).backend)
      end
    end

    [1, 4, 64].each do |workers|
      it "accepts workers: #{workers}, which resolve the names of several fibers" do
        found = Heddle.run(workers:) do
          results = Queue.new
          5.times { Fiber.schedule { results << Addrinfo.ip("localhost").ip? } }
          Array.new(5) { results.pop }
        end

        expect(found).to eq([true] * 5)
      end
    end

    [:epoll, :POLL, 1, [], Object].each do |backend|
      it "refuses backend: #{backend.inspect}, and names the accepted values" do
        expect { described_class.new(backend:) }
          .to raise_error(ArgumentError, /backend.*:auto.*:io_uring.*:poll.*#{Regexp.escape(backend.inspect)}/)
      end
    end

    [0, -1, 1.5, "4", :many, 10**20, Float::NAN].each do |workers|
      it "refuses workers: #{workers.inspect}, and names the accepted values" do
        expect { described_class.new(workers:) }
          .to raise_error(ArgumentError, /workers.*Integer.*1.*#{Regexp.escape(workers.inspect)}/)
      end
    end

    [0.001, 1, 5.5, 1/2r, 86_400, Float::INFINITY, nil].each do |grace|
      it "accepts grace: #{grace.inspect}, and runs fibers" do
        expect(Heddle.run(grace:) { Heddle.await(Heddle.spin { sleep(0) && :ended }) }).to eq(:ended)
      end
    end

    [0, 0.0001, -1, 86_401, Float::NAN, -Float::INFINITY, "5", :never, Object].each do |grace|
      it "refuses grace: #{grace.inspect}, and names the accepted values" do
        expect { described_class.new(grace:) }.to raise_error(
          ArgumentError,
          "grace: must be seconds from 0.001 to 86400, or Float::INFINITY, not #{grace.inspect}"
        )
      end
    end

    [true, nil].each do |busy_poll|
      it "accepts busy_poll: #{busy_poll.inspect}, and runs fibers" do
        expect(Heddle.run(busy_poll:) { Heddle.await(Heddle.spin { sleep(0) && :ended }) }).to eq(:ended)
      end
    end

    it "never polls busily with busy_poll: false" do
      kernel = Heddle.run(busy_poll: false) do
        fiber_end, thread_end = UNIXSocket.pair
        echo = Thread.new { 100.times { thread_end.write(thread_end.readpartial(1)) } }
        100.times { fiber_end.write("x") && fiber_end.readpartial(1) }
        echo.join
        Fiber.scheduler.stats[:kernel]
      end

      expect(kernel[:busy_poll_count]).to eq(0)
    end

    [0, 1, "false", :never, Object].each do |busy_poll|
      it "refuses busy_poll: #{busy_poll.inspect}, and names the accepted values" do
        expect { described_class.new(busy_poll:) }
          .to raise_error(ArgumentError, "busy_poll: must be true or false, not #{busy_poll.inspect}")
      end
    end

    it "refuses an option that it doesn't know, and names it" do
      expect { described_class.new(wrokers: 1) }.to raise_error(ArgumentError, /unknown keyword.*wrokers/)
    end

    it "refuses an argument that isn't an option" do
      expect { described_class.new(:poll) }.to raise_error(ArgumentError, /wrong number of arguments/)
    end

    it "leaves no descriptor open when it refuses an option", if: File.directory?("/proc/self/fd") do
      opened = lambda do
        GC.start
        Dir.children("/proc/self/fd").size
      end
      before = opened.call
      20.times { described_class.new(workers: 0) rescue nil } # rubocop:disable Style/RescueModifier

      expect(opened.call).to be <= before
    end
  end

  describe "options of Heddle.run" do
    it "are passed on to the scheduler" do
      expect { Heddle.run(workers: 0) { nil } }.to raise_error(ArgumentError, /workers/)
    end

    it "leave no scheduler behind when they are refused" do
      begin
        Heddle.run(backend: :nope) { nil }
      rescue ArgumentError
        left = Fiber.scheduler
      end

      expect(left).to be_nil
    end

    it "don't run the block when they are refused" do
      called = false
      begin
        Heddle.run(nope: 1) { called = true }
      rescue ArgumentError
        nil
      end

      expect(called).to be(false)
    end
  end
end
