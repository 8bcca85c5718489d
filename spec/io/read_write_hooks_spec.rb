# frozen_string_literal: true

require "io/nonblock"
require "socket"
require "tempfile"

# Before version 4 of the interface, `length` is the least number of bytes to wait for.
RSpec.describe Heddle::Scheduler, "before version 4 of Ruby's interface", :least_length do
  def buffer_of(size)
    IO::Buffer.new(size)
  end

  describe "#io_read" do
    def io_read(...) = Fiber.scheduler.io_read(...)

    it "returns -EAGAIN with a length of 0 when there is no data" do
      answer = IO.pipe { |reader, _writer| Heddle.run { io_read(reader, buffer_of(8), 0, 0) } }
      expect(answer).to eq(-Errno::EAGAIN::Errno)
    end

    it "returns the number of available bytes with a length of 0" do
      answer = IO.pipe do |reader, writer|
        writer.write("abc")
        Heddle.run do
          buffer = buffer_of(8)
          [io_read(reader, buffer, 0, 0), buffer.get_string(0, 3)]
        end
      end
      expect(answer).to eq [3, "abc"]
    end

    it "waits for as many bytes as length requests" do
      answer = IO.pipe do |reader, writer|
        Heddle.run do
          buffer = buffer_of(8)
          Fiber.schedule do
            2.times do
              writer.write("abc")
              sleep(0)
            end
          end
          [io_read(reader, buffer, 5, 0), buffer.get_string(0, 6)]
        end
      end
      expect(answer).to eq [6, "abcabc"]
    end

    it "reads no more than the buffer holds" do
      answer = IO.pipe do |reader, writer|
        writer.write("abcdef")
        Heddle.run { [io_read(reader, buffer_of(4), 1, 0), reader.readpartial(10)] }
      end
      expect(answer).to eq [4, "ef"]
    end

    it "writes the bytes to the buffer from offset on" do
      string = IO.pipe do |reader, writer|
        writer.write("cd")
        Heddle.run do
          buffer = buffer_of(4)
          buffer.set_string("ab..")
          io_read(reader, buffer, 2, 2)
          buffer.get_string
        end
      end
      expect(string).to eq "abcd"
    end

    it "returns 0 at the end" do
      answer = IO.pipe do |reader, writer|
        writer.close
        Heddle.run { [io_read(reader, buffer_of(8), 0, 0), io_read(reader, buffer_of(8), 8, 0)] }
      end
      expect(answer).to eq [0, 0]
    end

    it "returns the number of bytes it has read when the end comes before length" do
      answer = IO.pipe do |reader, writer|
        Heddle.run do
          Fiber.schedule do
            writer.write("abc")
            sleep(0)
            writer.close
          end
          io_read(reader, buffer_of(8), 8, 0)
        end
      end
      expect(answer).to eq 3
    end

    it "returns the negative errno of an error" do
      answer = File.open("/") { |directory| Heddle.run { io_read(directory, buffer_of(8), 0, 0) } }
      expect(answer).to eq(-Errno::EISDIR::Errno)
    end

    it "lets other fibers run while it waits for a descriptor in blocking mode" do
      answer = IO.pipe do |reader, writer|
        reader.nonblock = false
        Heddle.run do
          Fiber.schedule { writer.write("abc") }
          io_read(reader, buffer_of(8), 1, 0)
        end
      end
      expect(answer).to eq 3
    end

    it "leaves the buffer unlocked" do
      locked = IO.pipe do |reader, writer|
        writer.write("abc")
        Heddle.run do
          buffer = buffer_of(8)
          io_read(reader, buffer, 1, 0)
          buffer.locked?
        end
      end
      expect(locked).to be false
    end

    it "returns 0 for a buffer of 0 bytes, and leaves a socket's datagram" do
      UNIXSocket.pair(:DGRAM) do |receiver, sender|
        results = Heddle.run do
          empty = io_read(receiver, buffer_of(0), 0, 0)
          sender.send("datagram", 0)
          [empty, io_read(receiver, buffer_of(4), 0, 4), receiver.recv_nonblock(10, exception: false)]
        end

        expect(results).to eq [0, 0, "datagram"]
      end
    end

    it "doesn't wait when IO#read_nonblock calls it" do
      answer = IO.pipe { |reader, _writer| Heddle.run { reader.read_nonblock(1, exception: false) } }
      expect(answer).to eq :wait_readable
    end

    it "fills an IO::Buffer for IO::Buffer#read" do
      string = IO.pipe do |reader, writer|
        Heddle.run do
          buffer = buffer_of(6)
          Fiber.schedule do
            2.times do
              writer.write("abc")
              sleep(0)
            end
          end
          buffer.read(reader, 6)
          buffer.get_string
        end
      end
      expect(string).to eq "abcabc"
    end

    it "raises for an offset outside of the buffer, and the scheduler stays usable" do
      outcome = IO.pipe do |reader, _writer|
        Heddle.run do
          io_read(reader, buffer_of(4), 1, 5)
        rescue ArgumentError => e
          [e.class, sleep(a_moment).class]
        end
      end
      expect(outcome).to eq [ArgumentError, Integer]
    end
  end

  describe "#io_write" do
    def io_write(...) = Fiber.scheduler.io_write(...)

    it "returns -EAGAIN with a length of 0 when there is no room" do
      answer = IO.pipe do |_reader, writer|
        fill(writer)
        Heddle.run { io_write(writer, buffer_of(8), 0, 0) }
      end
      expect(answer).to eq(-Errno::EAGAIN::Errno)
    end

    it "writes the buffer's bytes from offset on" do
      answer = IO.pipe do |reader, writer|
        written = Heddle.run { io_write(writer, IO::Buffer.for("abcdef"), 0, 2) }
        [written, reader.readpartial(10)]
      end
      expect(answer).to eq [4, "cdef"]
    end

    it "waits until as many bytes are written as length requests" do
      answer = IO.pipe do |reader, writer|
        Heddle.run do
          bytes = "x" * (1 << 18)
          read = Queue.new
          Fiber.schedule { read.push(reader.read.size) }
          written = io_write(writer, IO::Buffer.for(bytes), bytes.size, 0)
          writer.close
          [written, read.pop]
        end
      end
      expect(answer).to eq [1 << 18, 1 << 18]
    end

    it "returns -EPIPE when there is no reader" do
      answer = IO.pipe do |reader, writer|
        reader.close
        Heddle.run { io_write(writer, IO::Buffer.for("x"), 1, 0) }
      end
      expect(answer).to eq(-Errno::EPIPE::Errno)
    end

    it "lets other fibers run while it waits for a descriptor in blocking mode" do
      answer = IO.pipe do |reader, writer|
        writer.nonblock = false
        Heddle.run do
          bytes = "x" * (1 << 18)
          read = Queue.new
          Fiber.schedule { read.push(reader.read.size) }
          io_write(writer, IO::Buffer.for(bytes), bytes.size, 0)
          writer.close
          read.pop
        end
      end
      expect(answer).to eq 1 << 18
    end

    it "keeps the mode of a descriptor in blocking mode" do
      nonblock = IO.pipe do |reader, writer|
        writer.nonblock = false
        Heddle.run do
          Fiber.schedule { reader.readpartial(10) }
          writer.write("abc")
          writer.nonblock?
        end
      end
      expect(nonblock).to be false
    end
  end

  describe "#io_pread" do
    it "reads from the file offset in its third argument" do
      read = Tempfile.create("heddle") do |file|
        file.write("0123456789")
        file.flush
        Heddle.run do
          buffer = buffer_of(4)
          buffer.set_string("ab..")
          [Fiber.scheduler.io_pread(file, buffer, 5, 2, 2), buffer.get_string]
        end
      end
      expect(read).to eq [2, "ab56"]
    end

    it "returns 0 beyond the end" do
      answer = Tempfile.create("heddle") do |file|
        Heddle.run { Fiber.scheduler.io_pread(file, buffer_of(4), 100, 0, 0) }
      end
      expect(answer).to eq 0
    end

    it "returns -ESPIPE for a pipe" do
      answer = IO.pipe { |reader, _writer| Heddle.run { Fiber.scheduler.io_pread(reader, buffer_of(4), 0, 0, 0) } }
      expect(answer).to eq(-Errno::ESPIPE::Errno)
    end
  end

  describe "#io_pwrite" do
    it "writes to the file offset in its third argument" do
      content = Tempfile.create("heddle") do |file|
        file.write("0123456789")
        file.flush
        written = Heddle.run { Fiber.scheduler.io_pwrite(file, IO::Buffer.for("abcd"), 5, 2, 2) }
        [written, File.read(file.path)]
      end
      expect(content).to eq [2, "01234cd789"]
    end

    it "returns -EBADF for a file that is open for reading" do
      answer = File.open(__FILE__) do |file|
        Heddle.run { Fiber.scheduler.io_pwrite(file, IO::Buffer.for("x"), 0, 1, 0) }
      end
      expect(answer).to eq(-Errno::EBADF::Errno)
    end
  end
end
