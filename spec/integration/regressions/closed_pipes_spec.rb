# frozen_string_literal: true

require "io/wait"

RSpec.describe "An IO that a fiber waits on" do
  # The waits of the fiber, by their names.
  reading = { "IO#wait_readable" => :wait_readable.to_proc, "IO#read" => :read.to_proc, "IO#gets" => :gets.to_proc,
              "IO.select" => ->(io) { IO.select([io]) } }
  writing = { "IO#wait_writable" => :wait_writable.to_proc, "IO#write" => ->(io) { io.write("y" * (1 << 20)) } }

  # Returns the outcome of a fiber's wait when the block closes or reopens the IO.
  def outcome(io, wait)
    Heddle.run do
      outcomes = Queue.new
      Fiber.schedule do
        wait.call(io)
        outcomes.push(:not_interrupted)
      rescue IOError => e
        outcomes.push(e.class)
      end
      yield
      outcomes.pop
    end
  end

  # Ruby 4.0 notifies a scheduler neither of a reopen by name nor, in IO.select, of a reopen by another IO.
  notified_of_reopen = RUBY_VERSION < "4.0"

  reading.each do |name, wait|
    it "ends #{name} with IOError when close_read closes a pipe" do
      expect(IO.pipe { |reader, _| outcome(reader, wait) { reader.close_read } }).to be IOError
    end

    it "ends #{name} with IOError when a pipe is reopened as another pipe", if: notified_of_reopen do
      result = IO.pipe do |reader, _|
        IO.pipe { |other, _| outcome(reader, wait) { reader.reopen(other) } }
      end
      expect(result).to be IOError
    end

    it "ends #{name} with IOError when a pipe is reopened as a file", if: notified_of_reopen do
      expect(IO.pipe { |reader, _| outcome(reader, wait) { reader.reopen(File::NULL) } }).to be IOError
    end
  end

  writing.each do |name, wait|
    it "ends #{name} with IOError when close_write closes a pipe" do
      result = IO.pipe do |_reader, writer|
        fill(writer)
        outcome(writer, wait) { writer.close_write }
      end
      expect(result).to be IOError
    end
  end

  it "can be read after a reopen as the new IO" do
    read = IO.pipe do |reader, _|
      IO.pipe do |other, writer|
        outcome(reader, :wait_readable.to_proc) { reader.reopen(other) }
        writer.write("from the other")
        Heddle.run { reader.readpartial(20) }
      end
    end
    expect(read).to eq "from the other"
  end
end
