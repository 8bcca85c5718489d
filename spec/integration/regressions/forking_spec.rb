# frozen_string_literal: true

require "tempfile"

RSpec.describe "A forked child" do
  it "may close an IO for which a sibling of its fiber waited in IO.select" do
    closed = IO.pipe do |reader, writer|
      Heddle.run do
        Fiber.schedule { IO.select([reader]) }
        in_child { reader.close || reader.closed? }
      ensure
        writer.write("x")
      end
    end
    expect(closed).to be true
  end

  it "may close an IO for which two siblings of its fiber waited in IO.select, among other IOs" do
    closed = IO.pipe do |reader, writer|
      IO.pipe do |other, _|
        Heddle.run do
          2.times { Fiber.schedule { IO.select([other, reader], [], []) } }
          in_child { reader.close || reader.closed? }
        ensure
          writer.write("x")
        end
      end
    end
    expect(closed).to be true
  end

  # io_uring leaves files to the kernel. An operation may not even be submitted before the other fibers run.
  def skip_without_workers
    skip "this backend has no workers for files" unless Heddle.run { Fiber.scheduler.backend } == :poll
  end

  # The parent's fibers don't run between their writes and the fork, so the results haven't been received yet.
  it "doesn't hang on a worker's result that wasn't received when the process forked" do
    skip_without_workers
    result = Tempfile.create("heddle") do |file|
      Heddle.run do
        Fiber.schedule { file.syswrite("x" * 4096) }
        nil until File.size(file.path) == 4096
        in_child { sleep(0.001) && :slept }
      end
    end
    expect(result).to eq :slept
  end

  it "doesn't hang on workers that were busy when the process forked" do
    skip_without_workers
    result = Tempfile.create("heddle") do |file|
      Heddle.run do
        20.times { Fiber.schedule { file.syswrite("x" * (1 << 20)) } }
        nil until File.size(file.path).positive?
        in_child { sleep(0.001) && :slept }
      end
    end
    expect(result).to eq :slept
  end

  it "takes no result from the parent's fibers whose work was pending when the process forked" do
    skip_without_workers
    size = Tempfile.create("heddle") do |file|
      written = 0
      Heddle.run do
        20.times { Fiber.schedule { file.syswrite("x" * (1 << 16)).then { |bytes| written += bytes } } }
        nil until File.size(file.path).positive?
        in_child { :at_once }
      end
      written
    end
    expect(size).to eq 20 << 16
  end
end
