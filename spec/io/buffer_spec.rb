# frozen_string_literal: true

require "socket"
require "tempfile"

# Ruby doesn't lock an IO::Buffer while a scheduler reads into it, so other fibers can change it meanwhile.
RSpec.describe "An IO::Buffer" do
  def pair_of(kind)
    pair = kind == :sockets ? UNIXSocket.pair : IO.pipe
    yield(*pair)
  ensure
    pair.each { |io| io.close unless io.closed? }
  end

  %i[sockets pipe].each do |kind|
    describe "that a fiber reads into from #{kind}", :least_length do
      it "receives data that comes while the fiber waits" do
        buffer = IO::Buffer.new(8)
        pair_of(kind) do |reader, writer|
          Heddle.run do
            Fiber.schedule { buffer.read(reader, 8) }
            Heddle.snooze
            writer.write("1234")
            Heddle.snooze
            writer.write("5678")
          end
        end
        expect(buffer.get_string).to eq "12345678"
      end

      it "can be freed meanwhile, and the read raises" do
        buffer = IO::Buffer.new(8)
        pair_of(kind) do |reader, writer|
          Heddle.run do
            reading = Heddle.spin(background: true) { buffer.read(reader, 8) }
            Heddle.snooze
            buffer.free
            expect { writer.write("12345678") && Heddle.await(reading) }
              .to raise_error(ArgumentError, /of 0 bytes has no 8 bytes from offset 0/)
          end
        end
      end

      it "can become too short meanwhile, and the read raises" do
        buffer = IO::Buffer.new(8)
        pair_of(kind) do |reader, writer|
          Heddle.run do
            reading = Heddle.spin(background: true) { buffer.read(reader, 8) }
            Heddle.snooze
            buffer.resize(4)
            expect { writer.write("12345678") && Heddle.await(reading) }
              .to raise_error(ArgumentError, /of 4 bytes has no 8 bytes from offset 0/)
          end
        end
      end

      it "can be a locked slice of a buffer that is freed meanwhile, and the read raises" do
        whole = IO::Buffer.new(8)
        pair_of(kind) do |reader, writer|
          Heddle.run do
            reading = Heddle.spin { whole.slice.then { |slice| slice.locked { slice.read(reader, 8) } } }
            Heddle.snooze
            whole.free
            expect { writer.write("12345678") && Heddle.await(reading) }
              .to raise_error(IO::Buffer::InvalidatedError)
          end
        end
      end

      it "can be shared by fibers that read into parts of it" do
        buffer = IO::Buffer.new(8)
        pair_of(kind) do |left, left_writer|
          pair_of(kind) do |right, right_writer|
            Heddle.run do
              Fiber.schedule { buffer.read(left, 4, 0) }
              Fiber.schedule { buffer.read(right, 4, 4) }
              Heddle.snooze
              right_writer.write("5678")
              left_writer.write("1234")
            end
          end
        end
        expect(buffer.get_string).to eq "12345678"
      end

      it "can be used again after the read was interrupted" do
        buffer = IO::Buffer.new(8)
        pair_of(kind) do |reader, writer|
          Heddle.run do
            Heddle.move_on_after(0.001) { buffer.read(reader, 8) }
            writer.write("12345678")
            buffer.read(reader, 8)
          end
        end
        expect(buffer.get_string).to eq "12345678"
      end
    end

    describe "that a fiber writes to #{kind}" do
      it "can be freed while the fiber waits for room" do
        text = "0123456789abcdef" * 65_536
        received = "".b
        pair_of(kind) do |reader, writer|
          Heddle.run do
            buffer = IO::Buffer.new(text.bytesize)
            buffer.set_string(text)
            writing = Heddle.spin do
              buffer.write(writer, 0, 0)
              buffer.write(writer)
            rescue ArgumentError
              nil
            end
            Heddle.snooze
            buffer.free
            Fiber.schedule { received << reader.readpartial(65_536) until reader.eof? }
            Heddle.await(writing)
            writer.close
          end
        end
        expect(received).not_to be_empty
        expect(text * 2).to start_with(received)
      end
    end
  end

  it "of several MiB is filled from a file and written to a file completely", :least_length do
    text = Random.new(1).bytes(3 << 20)
    Tempfile.create do |file|
      buffer = IO::Buffer.new(text.bytesize)
      Heddle.run do
        IO::Buffer.for(text).pwrite(file, 0, text.bytesize)
        buffer.pread(file, 0, text.bytesize)
      end
      expect(buffer.get_string).to eq text
      expect(File.binread(file.path)).to eq text
    end
  end
end
