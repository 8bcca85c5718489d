# frozen_string_literal: true

require "io/nonblock"
require "io/wait"

RSpec.describe "Pipes" do
  let(:ends) { IO.pipe }
  let(:reader) { ends.first }
  let(:writer) { ends.last }

  after { ends.each { |io| io.close unless io.closed? } }

  it "carry 1 MiB from one fiber to another" do
    data = Random.new(1).bytes(1 << 20)
    received = nil
    reader.binmode
    Heddle.run do
      Fiber.schedule { received = reader.read }
      writer.write(data)
      writer.close
    end

    expect(received == data).to be(true)
  end

  it "carry 1 MiB to a fiber that starts reading only when the writer waits" do
    received = nil
    order = []
    Heddle.run do
      Fiber.schedule do
        writer.write("x" * (1 << 20))
        order << :written
        writer.close
      end
      order << :reading
      received = reader.read.bytesize
    end

    expect([received, order]).to eq([1 << 20, %i[reading written]])
  end

  it "let other fibers run while a reader waits" do
    order = []
    Heddle.run do
      Fiber.schedule { order << reader.gets }
      order << "first"
      writer.puts("second")
    end

    expect(order).to eq(%W[first second\n])
  end

  it "give each of several readers a byte of its own" do
    bytes = []
    Heddle.run do
      10.times { Fiber.schedule { bytes << reader.readpartial(1) } }
      writer.write("0123456789")
    end

    expect(bytes.sort.join).to eq("0123456789")
  end

  it "make each of several readers read the end" do
    ends_seen = []
    Heddle.run do
      5.times { Fiber.schedule { ends_seen << reader.read(1) } }
      writer.close
    end

    expect(ends_seen).to eq([nil] * 5)
  end

  it "keep the lines of several writers whole" do
    lines = nil
    Heddle.run do
      writers = Array.new(10) { writer.dup }
      writer.close
      writers.each_with_index do |io, i|
        Fiber.schedule do
          100.times { |j| io.write("#{i}:#{j}:#{"x" * 100}\n") }
          io.close
        end
      end
      lines = reader.readlines(chomp: true)
    end
    expected = Array.new(10) { |i| Array.new(100) { |j| "#{i}:#{j}:#{"x" * 100}" } }

    expect(lines.group_by { |line| line[/\A\d+/].to_i }.sort.map(&:last)).to eq(expected)
  end

  it "wake several writers that all wait for room" do
    written = []
    Heddle.run do
      5.times do |i|
        Fiber.schedule do
          # Each fiber writes to a duplicate: fibers that write to the same IO wait for its lock.
          own = writer.dup
          own.write("x" * 200_000)
          own.close
          written << i
        end
      end
      reader.readpartial(65_536) until written.size == 5
    end

    expect(written.sort).to eq([0, 1, 2, 3, 4])
  end

  it "read exactly the requested number of bytes, however they arrive" do
    chunks = Heddle.run do
      Fiber.schedule do
        "abcdefg".each_char do |char|
          writer.write(char)
          sleep(0)
        end
        writer.close
      end
      [reader.read(3), reader.read(3), reader.read(3), reader.read(3)]
    end

    expect(chunks).to eq(["abc", "def", "g", nil])
  end

  it "return the available bytes from readpartial" do
    parts = Heddle.run do
      read = Queue.new
      Fiber.schedule do
        writer.write("one")
        read.pop
        writer.write("two")
      end
      [reader.readpartial(1000), (read << true) && reader.readpartial(1000)]
    end

    expect(parts).to eq(%w[one two])
  end

  it "raise EOFError from readpartial at the end" do
    attempt = lambda do
      Heddle.run do
        Fiber.schedule { writer.close }
        reader.readpartial(10)
      end
    end

    expect(&attempt).to raise_error(EOFError)
  end

  it "raise EPIPE for a writer that waits when the reading end is closed" do
    attempt = lambda do
      Heddle.run do
        Fiber.schedule do
          reader.readpartial(1)
          reader.close
        end
        writer.write("x" * (1 << 20))
      end
    end

    expect(&attempt).to raise_error(Errno::EPIPE)
  end

  it "raise IOError from a write to the reading end" do
    expect { Heddle.run { reader.write("x") } }.to raise_error(IOError, /not opened for writing/)
  end

  it "read into the given buffer" do
    buffer = +"something longer than what comes"
    Heddle.run do
      Fiber.schedule { writer.write("short") }
      reader.readpartial(100, buffer)
    end

    expect(buffer).to eq("short")
  end

  it "return a byte again after ungetbyte" do
    text = Heddle.run do
      Fiber.schedule { writer.write("abc") }
      byte = reader.getbyte
      reader.ungetbyte(byte + 1)
      reader.read(3)
    end

    expect(text).to eq("bbc")
  end

  it "carry several strings of one write in their order" do
    text = Heddle.run do
      Fiber.schedule do
        writer.write("one", "two", "three")
        writer.puts(%w[four five])
        writer << "six" << "seven"
        writer.close
      end
      reader.read
    end

    expect(text).to eq("onetwothreefour\nfive\nsixseven")
  end

  it "pass the write buffer on when it is flushed" do
    seen = Heddle.run do
      writer.sync = false
      writer.write("buffered")
      before = reader.read_nonblock(100, exception: false)
      Fiber.schedule { writer.flush }
      [before, reader.readpartial(100)]
    end

    expect(seen).to eq([:wait_readable, "buffered"])
  end

  it "pass a full write buffer on while other fibers run" do
    text = nil
    Heddle.run do
      writer.sync = false
      Fiber.schedule { text = reader.read.size }
      1000.times { writer.write("x" * 1000) }
      writer.close
    end

    expect(text).to eq(1_000_000)
  end

  it "decode characters that arrive byte by byte" do
    text = Heddle.run do
      reader.set_encoding("UTF-8")
      Fiber.schedule do
        "schön\n".each_byte do |byte|
          writer.syswrite(byte.chr)
          sleep(0)
        end
      end
      reader.gets
    end

    expect(text).to eq("schön\n")
  end

  it "can be copied by IO.copy_stream" do
    copied = nil
    Heddle.run do
      from, into = IO.pipe
      Fiber.schedule do
        into.write("x" * 300_000)
        into.close
      end
      Fiber.schedule do
        IO.copy_stream(from, writer)
        writer.close
      end
      copied = reader.read.bytesize
    end

    expect(copied).to eq(300_000)
  end

  it "fill an IO::Buffer up to the requested length", :least_length do
    text = Heddle.run do
      buffer = IO::Buffer.new(8)
      Fiber.schedule do
        %w[abc def gh].each do |part|
          writer.write(part)
          sleep(0)
        end
      end
      buffer.read(reader, 8)
      buffer.get_string
    end

    expect(text).to eq("abcdefgh")
  end

  it "are written from an IO::Buffer" do
    text = Heddle.run do
      buffer = IO::Buffer.for("from a buffer")
      Fiber.schedule { buffer.write(writer, buffer.size) }
      reader.readpartial(100)
    end

    expect(text).to eq("from a buffer")
  end

  it "wake a fiber that waits for data from a thread" do
    thread = Thread.new do
      reader.wait_readable
      reader.gets.tap { writer.puts("from the thread") }
    end
    texts = Heddle.run do
      writer.puts("from the fiber")
      [thread.value, reader.gets]
    end

    expect(texts).to eq(["from the fiber\n", "from the thread\n"])
  end

  it "serve a hundred pairs of fibers at once" do
    sums = []
    Heddle.run do
      100.times do |i|
        from, into = IO.pipe
        Fiber.schedule do
          sums << from.each_line.sum(&:to_i)
          from.close
        end
        Fiber.schedule do
          10.times { |j| into.puts(i * j) }
          into.close
        end
      end
    end

    expect(sums.sort).to eq(Array.new(100) { |i| i * 45 })
  end

  context "with descriptors in blocking mode" do
    before { ends.each { |io| io.nonblock = false } }

    it "let other fibers run while a reader waits" do
      order = []
      Heddle.run do
        Fiber.schedule { order << reader.readpartial(10) }
        order << "first"
        writer.write("second")
      end

      expect(order).to eq(%w[first second])
    end

    it "let other fibers run while a fiber waits for a line" do
      order = []
      Heddle.run do
        Fiber.schedule { order << reader.gets }
        order << "first"
        writer.puts("second")
      end

      expect(order).to eq(%W[first second\n])
    end

    it "let other fibers run while a writer waits for room" do
      received = nil
      Heddle.run do
        Fiber.schedule do
          writer.write("x" * 200_000)
          writer.close
        end
        received = reader.read.bytesize
      end

      expect(received).to eq(200_000)
    end

    it "let several readers wait at the same time" do
      bytes = []
      Heddle.run do
        5.times { Fiber.schedule { bytes << reader.readpartial(1) } }
        writer.write("01234")
      end

      expect(bytes.sort.join).to eq("01234")
    end
  end
end
