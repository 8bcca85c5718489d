# frozen_string_literal: true

require "io/console"
require "pty"
require "socket"
require "tmpdir"

RSpec.describe "Reading and writing in a fiber has the same outcome as on a plain thread:" do
  around { |example| Dir.mktmpdir { |directory| (@directory = directory) && example.run } }

  # Each call gets IOs of its own.
  def using(*ios)
    yield(*ios)
  ensure
    ios.each { |io| io.close unless io.closed? }
  end

  def path = File.join(@directory, (@paths = @paths.to_i + 1).to_s)

  def terminal(&) = PTY.open { |master, slave| slave.raw! && using(master, slave, &) }

  def fifo(mode = File::RDONLY | File::NONBLOCK, name = path.tap { |path| File.mkfifo(path) }, &)
    File.open(name, mode, &)
  end

  def device(name, mode = "r", &) = File.open("/dev/#{name}", mode, &)

  waiting = [
    "a terminal's read", "read of a FIFO that is open for both", "read of a FIFO with a writer that writes nothing",
    "read of a pipe", "read of a socket pair"
  ]

  {
    "a terminal's getch(min: 0)" => -> { terminal { |_, slave| slave.getch(min: 0) } },
    "a terminal's getch(min: 0) when a key was pressed" =>
      -> { terminal { |master, slave| master.write("k") && slave.wait_readable && slave.getch(min: 0) } },
    "a terminal's read with raw(min: 0, time: 0.1)" =>
      -> { terminal { |_, slave| slave.raw(min: 0, time: 0.1) { slave.read(1) } } },
    "a terminal's readpartial with raw(min: 0, time: 0.1)" =>
      -> { terminal { |_, slave| slave.raw(min: 0, time: 0.1) { slave.readpartial(1) } } },
    "a terminal's sysread with raw(min: 0)" =>
      -> { terminal { |_, slave| slave.raw(min: 0, time: 0) { slave.sysread(1) } } },
    "a terminal's gets with raw(min: 0)" => -> { terminal { |_, slave| slave.raw(min: 0, time: 0) { slave.gets } } },
    "a terminal's read_nonblock with raw(min: 0)" =>
      -> { terminal { |_, slave| slave.raw(min: 0, time: 0) { slave.read_nonblock(1, exception: false) } } },
    "a terminal's read_nonblock with raw(min: 0, time: 0.1)" =>
      -> { terminal { |_, slave| slave.raw(min: 0, time: 0.1) { slave.read_nonblock(1, exception: false) } } },
    "a terminal's read" => -> { terminal { |_, slave| slave.read(1) } },
    "a terminal whose master is closed" => -> { terminal { |master, slave| master.close || slave.read(1) } },
    "a terminal whose slave is closed" => -> { terminal { |master, slave| slave.close || master.read(1) } },

    "read of a FIFO without a writer" => -> { fifo(&:read) },
    "read(1) of a FIFO without a writer" => -> { fifo { |io| io.read(1) } },
    "gets of a FIFO without a writer" => -> { fifo(&:gets) },
    "readpartial of a FIFO without a writer" => -> { fifo { |io| io.readpartial(1) } },
    "sysread of a FIFO without a writer" => -> { fifo { |io| io.sysread(1) } },
    "read_nonblock of a FIFO without a writer" => -> { fifo { |io| io.read_nonblock(1, exception: false) } },
    "wait_readable of a FIFO without a writer" => -> { fifo { |io| io.wait_readable(0.01) } },
    "read of a FIFO with a writer that writes nothing" => -> { fifo { |io| fifo("w", io.path) { io.read(1) } } },
    "read of a FIFO whose writer is gone" =>
      -> { fifo { |io| fifo("w", io.path) { |other| other << "x" } && [io.read(1), io.read(1)] } },
    "read of a FIFO that is open for both" => -> { fifo(File::RDWR) { |io| io.read(1) } },

    "read of a pipe" => -> { IO.pipe { |reader, _| reader.read(1) } },
    "read of a pipe whose writer is gone" => -> { IO.pipe { |reader, writer| writer.close || reader.read(1) } },
    "write to a pipe whose reader is gone" => -> { IO.pipe { |reader, writer| reader.close || writer.syswrite("x") } },
    "pread of a pipe" => -> { IO.pipe { |reader, writer| (writer << "x") && reader.pread(1, 0) } },
    "pread of a socket" => -> { using(*UNIXSocket.pair) { |left, right| left.write("x") && right.pread(1, 0) } },
    "pread of a terminal" => -> { terminal { |_, slave| slave.pread(1, 0) } },

    "read of a listening TCP socket" => -> { using(TCPServer.new("127.0.0.1", 0)) { |io| io.read(1) } },
    "gets of a listening TCP socket" => -> { using(TCPServer.new("127.0.0.1", 0), &:gets) },
    "sysread of a listening TCP socket" => -> { using(TCPServer.new("127.0.0.1", 0)) { |io| io.sysread(1) } },
    "write to a listening TCP socket" => -> { using(TCPServer.new("127.0.0.1", 0)) { |io| io.syswrite("x") } },
    "readpartial of a Socket that listens" =>
      -> { using(Socket.new(:INET, :STREAM)) { |io| io.listen(1) && io.readpartial(1) } },
    "read of a listening UNIX socket" => -> { using(UNIXServer.new(path)) { |io| io.readpartial(1) }.class },
    "read of a TCP socket that is not connected" => -> { using(Socket.new(:INET, :STREAM)) { |io| io.read(1) } },
    "write to a TCP socket that is not connected" => -> { using(Socket.new(:INET, :STREAM)) { |io| io.write("x") } },
    "read of a UNIX socket that is not connected" => -> { using(Socket.new(:UNIX, :STREAM)) { |io| io.read(1) } },
    "write to a UDP socket that is not connected" => -> { using(UDPSocket.new) { |io| io.write("x") } },
    "read of a socket pair" => -> { using(*UNIXSocket.pair) { |left, _| left.read(1) } },
    "read of a socket that is shut down" =>
      -> { using(*UNIXSocket.pair) { |left, _| left.shutdown(:RD) && left.read } },
    "read of a datagram" =>
      -> { using(*UNIXSocket.pair(:DGRAM)) { |left, right| left.write("x") && right.readpartial(9) } },

    "read of /dev/null" => -> { device("null") { |io| [io.read(1), io.read] } },
    "write to /dev/null" => -> { device("null", "w") { |io| io.syswrite("x" * 300_000) } },
    "read of /dev/zero" => -> { device("zero") { |io| io.read(3_000_000).bytesize } },
    "pread of /dev/zero" => -> { device("zero") { |io| io.pread(3, 0) } },
    "read of /dev/random" => -> { device("random") { |io| io.read(3).bytesize } },
    "write to /dev/full" => -> { device("full", "w") { |io| io.syswrite("x") } },
    "read of a directory" => -> { File.open("/") { |io| io.readpartial(1) } },
    "pread of a directory" => -> { File.open("/") { |io| io.pread(1, 0) } },
    "read of a file in /proc" => -> { File.read("/proc/self/comm") },
    "pread of a file in /proc" => -> { File.open("/proc/self/stat") { |io| io.pread(3, 0).bytesize } }
  }.each do |name, call|
    it name do
      skip "this system has no /proc" if name.include?("/proc") && !File.exist?("/proc/self/stat")

      expect_same_outcome(may_wait: waiting.include?(name)) { instance_exec(&call) }
    end
  end
end
