# frozen_string_literal: true

require "digest"
require "tmpdir"

RSpec.describe "Files" do
  let(:directory) { Dir.mktmpdir("heddle") }
  let(:path) { File.join(directory, "file") }

  after { FileUtils.remove_entry(directory) }

  it "return the bytes that were written" do
    text = Heddle.run do
      File.write(path, "warp and weft")
      File.read(path)
    end

    expect(text).to eq("warp and weft")
  end

  it "are read line by line" do
    File.write(path, "one\ntwo\nthree")
    lines = Heddle.run { File.open(path) { |file| [file.gets, file.gets, file.gets, file.gets] } }

    expect(lines).to eq(["one\n", "two\n", "three", nil])
  end

  it "can be read by foreach and readlines" do
    File.write(path, "one\ntwo\n")
    lines = Heddle.run { [File.foreach(path).to_a, File.readlines(path, chomp: true)] }

    expect(lines).to eq([%W[one\n two\n], %w[one two]])
  end

  it "can be read and written at any offset by pread and pwrite, which keep the position" do
    result = Heddle.run do
      File.open(path, "w+") do |file|
        file.syswrite("0123456789")
        file.sysseek(2)
        file.pwrite("ABC", 4)
        [file.pread(5, 3), file.sysread(2), file.sysseek(0, IO::SEEK_CUR)]
      end
    end

    expect(result).to eq(["3ABC7", "23", 4])
  end

  it "raise EOFError from pread beyond the end" do
    File.write(path, "short")

    expect { Heddle.run { File.open(path) { |file| file.pread(1, 100) } } }.to raise_error(EOFError)
  end

  it "are written by pwrite with arguments that are converted once, in Ruby's order, and refused with Ruby's errors" do
    converted = []
    text = Object.new.tap { |object| object.define_singleton_method(:to_s) { converted.push(:to_s) && "ab" } }
    offset = Object.new.tap { |object| object.define_singleton_method(:to_int) { converted.push(:to_int) && 1 } }
    program = lambda do
      File.open(path, "w+") do |file|
        written = [file.pwrite(text, offset), file.pwrite("c", 3.9), file.pread(4, 0)]
        errors = [nil, "1", 1 << 64, -1].map do |wrong|
          file.pwrite("d", wrong)
        rescue StandardError => e
          [e.class, e.message.sub(/ - .*/, "")]
        end
        [written, errors, converted.slice!(0..)]
      end
    end

    expect(Heddle.run(&program)).to eq program.call
  end

  it "are not taken for locked when the thread is killed that waits for the lock: flock raises ThreadError" do
    File.open(path, "w") do |holder|
      holder.flock(File::LOCK_EX)
      before = Thread.list
      locking = lambda do
        fiber = Heddle.spin { File.open(path) { |file| file.flock(File::LOCK_EX) } }
        Heddle.snooze until (helper = (Thread.list - before).first)
        helper.kill
        Heddle.await(fiber)
      end

      expect { Heddle.run(&locking) }.to raise_error(ThreadError, /killed before the call had ended/)
    end
  end

  # Ruby 3.3 and 3.4 crash in most runs if a scheduler's hook writes.
  it "are written by pwrite while other threads run Ruby code" do
    expect(printed(<<~RUBY)).to eq "100\n"
      require "heddle"
      require "tempfile"
      Tempfile.create do |file|
        stop = false
        threads = Array.new(2) { Thread.new { (1000.times { Object.new } && Thread.pass) until stop } }
        Heddle.run { 100.times { |offset| file.pwrite("x", offset) } }
        stop = true
        threads.each(&:join)
        puts file.size
      end
    RUBY
  end

  it "are extended with a hole by pwrite beyond the end" do
    content = Heddle.run do
      File.open(path, "w") { |file| file.pwrite("x", 3) }
      File.binread(path)
    end

    expect(content).to eq("\0\0\0x")
  end

  it "are appended to at their end, wherever the position is" do
    content = Heddle.run do
      File.open(path, "a") do |one|
        File.open(path, "a") do |other|
          one.syswrite("1")
          other.syswrite("2")
          one.syswrite("3")
        end
      end
      File.read(path)
    end

    expect(content).to eq("123")
  end

  it "lose no line when many fibers append" do
    Heddle.run do
      20.times do |i|
        Fiber.schedule do
          File.open(path, "a") do |file|
            file.sync = true
            50.times { |j| file.write("#{i}:#{j}\n") }
          end
        end
      end
    end
    expected = Array.new(20) { |i| Array.new(50) { |j| "#{i}:#{j}" } }.flatten

    expect(File.readlines(path, chomp: true)).to match_array(expected)
  end

  it "are read and written from the position that seek sets" do
    result = Heddle.run do
      File.open(path, "w+") do |file|
        file.write("0123456789")
        file.seek(3)
        file.write("abc")
        file.seek(-2, IO::SEEK_END)
        tail = file.read
        file.rewind
        [file.read, tail, file.pos]
      end
    end

    expect(result).to eq(%w[012abc6789 89] << 10)
  end

  it "are written at the position that was read up to, not at the end of the read-ahead buffer" do
    File.write(path, "abcdef")
    content = Heddle.run do
      File.open(path, "r+") do |file|
        file.read(2)
        file.write("XY")
        file.rewind
        file.read
      end
    end

    expect(content).to eq("abXYef")
  end

  it "share their position with a duplicate" do
    File.write(path, "abcdef")
    parts = Heddle.run do
      File.open(path) do |file|
        other = file.dup
        [file.sysread(2), other.sysread(2), file.sysread(2)].tap { other.close }
      end
    end

    expect(parts).to eq(%w[ab cd ef])
  end

  it "return data that is added after their end was reached" do
    File.write(path, "old")
    parts = Heddle.run do
      File.open(path) do |file|
        before = [file.read, file.read(1)]
        File.write(path, " new", mode: "a")
        before << file.read
      end
    end

    expect(parts).to eq(["old", nil, " new"])
  end

  it "are at their end when they are truncated below a reader's position" do
    File.write(path, "x" * 100_000)
    rest = Heddle.run do
      File.open(path) do |file|
        file.sysread(10)
        File.truncate(path, 5)
        file.read
      end
    end

    expect(rest).to eq("")
  end

  it "can be truncated" do
    content = Heddle.run do
      File.open(path, "w+") do |file|
        file.write("0123456789")
        file.flush
        file.truncate(4)
        file.rewind
        file.read
      end
    end

    expect(content).to eq("0123")
  end

  it "return 8 MiB unchanged from the disk" do
    data = Random.new(3).bytes(8 << 20)
    digest = Heddle.run do
      File.binwrite(path, data)
      Digest::SHA256.hexdigest(File.binread(path))
    end

    expect(digest).to eq(Digest::SHA256.hexdigest(data))
  end

  it "can be read where they report no size, as in /proc", if: File.exist?("/proc/self/status") do
    status = Heddle.run { File.read("/proc/self/status") }

    expect(status[/^Pid:\s+(\d+)$/, 1]).to eq(Process.pid.to_s)
  end

  it "are read line by line in /proc, too", if: File.exist?("/proc/self/maps") do
    lines = Heddle.run { File.open("/proc/self/maps") { |file| file.each_line.to_a } }

    expect(lines).to all(match(/\A\h+-\h+ /))
  end

  it "can be copied by IO.copy_stream" do
    data = Random.new(4).bytes(300_000)
    File.binwrite(path, data)
    copy = Heddle.run do
      IO.copy_stream(path, "#{path}.copy")
      File.binread("#{path}.copy")
    end

    expect(copy == data).to be(true)
  end

  it "can be copied in part by IO.copy_stream with a length and an offset" do
    File.write(path, "0123456789")
    copy = Heddle.run do
      IO.copy_stream(path, "#{path}.copy", 4, 3)
      File.read("#{path}.copy")
    end

    expect(copy).to eq("3456")
  end

  it "can be copied into a pipe that fills up again and again" do
    File.binwrite(path, "x" * 500_000)
    size = nil
    Heddle.run do
      reader, writer = IO.pipe
      Fiber.schedule do
        size = reader.read.bytesize
        reader.close
      end
      IO.copy_stream(path, writer)
      writer.close
    end

    expect(size).to eq(500_000)
  end

  it "can be filled from a pipe by IO.copy_stream" do
    Heddle.run do
      reader, writer = IO.pipe
      Fiber.schedule do
        writer.write("y" * 500_000)
        writer.close
      end
      File.open(path, "w") { |file| IO.copy_stream(reader, file) }
      reader.close
    end

    expect(File.size(path)).to eq(500_000)
  end

  it "can be read by many fibers at once, each at its own offset" do
    File.write(path, Array.new(1000) { |i| format("%04d\n", i) }.join)
    found = []
    Heddle.run do
      50.times do |i|
        Fiber.schedule do
          File.open(path) do |file|
            file.seek(i * 100)
            found << file.gets.to_i
          end
        end
      end
    end

    expect(found.sort).to eq(Array.new(50) { |i| i * 20 })
  end

  it "that don't exist raise ENOENT" do
    expect { Heddle.run { File.read(path) } }.to raise_error(Errno::ENOENT)
  end

  it "that are directories raise EISDIR" do
    expect { Heddle.run { File.read(directory) } }.to raise_error(Errno::EISDIR)
  end

  it "that are open for reading only raise IOError from a write" do
    File.write(path, "")

    expect { Heddle.run { File.open(path) { |file| file.write("x") } } }.to raise_error(IOError, /not opened/)
  end

  it "on a full device raise ENOSPC", if: File.exist?("/dev/full") do
    expect { Heddle.run { File.open("/dev/full", "w") { |file| file.syswrite("x") } } }.to raise_error(Errno::ENOSPC)
  end

  it "that are devices can be read and written" do
    result = Heddle.run { [File.write(File::NULL, "gone"), File.read(File::NULL), File.read("/dev/zero", 3)] }

    expect(result).to eq([4, "", "\0\0\0"])
  end

  it "that are FIFOs let other fibers run while a reader waits" do
    order = []
    Heddle.run do
      File.mkfifo(path)
      File.open(path, File::RDWR) do |fifo|
        Fiber.schedule { order << fifo.readpartial(100) }
        order << "first"
        fifo.syswrite("second")
        # Lets the reader end before its file is closed.
        sleep(0) until order.size == 2
      end
    end

    expect(order).to eq(%w[first second])
  end

  it "fill an IO::Buffer from any offset" do
    File.write(path, "0123456789")
    text = Heddle.run do
      buffer = IO::Buffer.new(4)
      File.open(path) { |file| buffer.pread(file, 3, 4) }
      buffer.get_string
    end

    expect(text).to eq("3456")
  end

  it "can be written from an IO::Buffer at any offset" do
    File.write(path, "0123456789")
    Heddle.run do
      File.open(path, "r+") { |file| IO::Buffer.for("abc").pwrite(file, 5, 3) }
    end

    expect(File.read(path)).to eq("01234abc89")
  end

  it "can be synchronized, renamed and deleted" do
    names = Heddle.run do
      File.open(path, "w") do |file|
        file.write("x")
        file.fsync
      end
      File.rename(path, "#{path}.new")
      Dir.children(directory).tap { File.delete("#{path}.new") } + Dir.children(directory)
    end

    expect(names).to eq(["file.new"])
  end
end
