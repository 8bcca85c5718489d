# frozen_string_literal: true

require "socket"
require "tempfile"

# From version 4 of the interface on, `io_read` and the like take `(offset, length)`, and transfer at most `length`
# bytes, once. On Rubies with an older version Heddle::Native has what the hooks are going to be.
RSpec.describe Heddle::Scheduler, "from version 4 of Ruby's interface on" do
  def hook(name, *) = Heddle.const_get(:Native).public_send(name, Fiber.scheduler, *)

  def again = -Errno::EAGAIN::Errno

  describe "#io_read" do
    def read(...) = hook(:read_once, ...)

    it "fills the buffer from offset on, with length bytes at most" do
      answer = IO.pipe do |reader, writer|
        writer.write("abcdef")
        buffer = IO::Buffer.for(+"........") { |wrapped| Heddle.run { [read(reader, wrapped, 2, 3), wrapped.get_string] } }
        [*buffer, reader.read_nonblock(10)]
      end
      expect(answer).to eq [3, "..abc...", "def"]
    end

    it "returns after a short transfer" do
      answer = IO.pipe do |reader, writer|
        writer.write("abc")
        Heddle.run { read(reader, IO::Buffer.new(8), 0, 8) }
      end
      expect(answer).to eq 3
    end

    it "returns -EAGAIN when a pipe has no data" do
      answer = IO.pipe { |reader, _writer| Heddle.run { read(reader, IO::Buffer.new(8), 0, 8) } }
      expect(answer).to eq again
    end

    it "returns 0 at the end" do
      answer = IO.pipe do |reader, writer|
        writer.close
        Heddle.run { read(reader, IO::Buffer.new(8), 0, 8) }
      end
      expect(answer).to eq 0
    end

    { "a pipe" => -> { IO.pipe }, "a socket" => -> { UNIXSocket.pair } }.each do |what, pair|
      it "returns 0 for a length of 0, and reads nothing from #{what}" do
        reader, writer = pair.call
        answer = Heddle.run do
          empty = read(reader, IO::Buffer.new(8), 0, 0)
          writer.write("abc")
          [empty, read(reader, IO::Buffer.new(8), 8, 0), read(reader, IO::Buffer.new(8), 0, 8)]
        end
        expect(answer).to eq [0, 0, 3]
      ensure
        [reader, writer].each(&:close)
      end

      it "raises ArgumentError for a range that exceeds the buffer, for #{what}" do
        reader, writer = pair.call
        ranges = [[0, 9], [8, 1], [9, 0]]
        messages = Heddle.run do
          ranges.map { |range| read(reader, IO::Buffer.new(8), *range) rescue $!.message } # rubocop:disable Style
        end
        expect(messages).to eq(ranges.map do |offset, length|
          "a buffer of 8 bytes has no #{length} bytes from offset #{offset} on"
        end)
      ensure
        [reader, writer].each(&:close)
      end

      it "raises IOError for a length of 0 if #{what} is closed" do
        reader, writer = pair.call
        reader.close
        expect { Heddle.run { read(reader, IO::Buffer.new(8), 0, 0) } }.to raise_error(IOError, "closed stream")
      ensure
        writer.close
      end
    end

    it "lets other fibers run while it waits for a socket, and then reads length bytes at most" do
      reader, writer = UNIXSocket.pair
      answer = Heddle.run do
        Fiber.schedule { sleep(0) && writer.write("abcdef") }
        [read(reader, IO::Buffer.new(8), 4, 4), reader.readpartial(10)]
      end
      expect(answer).to eq [4, "ef"]
    ensure
      [reader, writer].each(&:close)
    end

    it "returns the negative errno of an error" do
      answer = File.open("/") { |directory| Heddle.run { read(directory, IO::Buffer.new(8), 0, 8) } }
      expect(answer).to eq(-Errno::EISDIR::Errno)
    end
  end

  describe "#io_write" do
    def write(...) = hook(:write_once, ...)

    { "a pipe" => -> { IO.pipe }, "a socket" => -> { UNIXSocket.pair } }.each do |what, pair|
      it "writes length bytes at most from offset on, to #{what}" do
        reader, writer = pair.call
        written = Heddle.run { write(writer, IO::Buffer.for("abcdef"), 1, 3) }
        expect([written, reader.readpartial(10)]).to eq [3, "bcd"]
      ensure
        [reader, writer].each(&:close)
      end

      it "returns 0 for a length of 0, also when there is no room in #{what}" do
        reader, writer = pair.call
        fill(writer)
        expect(Heddle.run { write(writer, IO::Buffer.for("abcdef"), 0, 0) }).to eq 0
      ensure
        [reader, writer].each(&:close)
      end
    end

    it "returns -EAGAIN when there is no room in a pipe" do
      answer = IO.pipe do |_reader, writer|
        fill(writer)
        Heddle.run { write(writer, IO::Buffer.for("abcdef"), 0, 6) }
      end
      expect(answer).to eq again
    end
  end

  it "#io_pread reads at its third argument, with length bytes at most, into the buffer from offset on" do
    answer = Tempfile.create("heddle") do |file|
      file.write("0123456789")
      file.flush
      IO::Buffer.for(+"......") do |buffer|
        Heddle.run { [hook(:pread_once, file, buffer, 5, 2, 3), buffer.get_string] }
      end
    end
    expect(answer).to eq [3, "..567."]
  end

  it "#io_pwrite writes at its third argument, length bytes at most of the buffer from offset on" do
    answer = Tempfile.create("heddle") do |file|
      file.write("0123456789")
      file.flush
      [Heddle.run { hook(:pwrite_once, file, IO::Buffer.for("abcdef"), 4, 1, 2) }, File.read(file.path)]
    end
    expect(answer).to eq [2, "0123bc6789"]
  end

  it "is what Ruby calls" do
    skip "Ruby #{RUBY_VERSION} has version #{HookInterface::VERSION}" if HookInterface::WAITS

    answer = IO.pipe do |reader, writer|
      writer.write("abcdef")
      buffer = IO::Buffer.new(8)
      Heddle.run { [Fiber.scheduler.io_read(reader, buffer, 2, 3), buffer.get_string(2, 3)] }
    end
    expect(answer).to eq [3, "abc"]
  end
end
