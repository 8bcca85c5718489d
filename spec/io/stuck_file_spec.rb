# frozen_string_literal: true

require "fileutils"
require "tmpdir"

# Nothing cancels a read of a file that another process or another machine stores, and that does not answer. Neither its
# scheduler's other fibers nor the process's other threads may stand still meanwhile.
RSpec.describe "A read of a file that does not answer" do
  # Debian calls the module fusepy.
  import = "try: import fusepy\nexcept ImportError: import fuse"
  python = %w[/usr/bin/python3 python3].find { |name| system(name, "-c", import, %i[out err] => File::NULL) }

  around do |example|
    skip "there is no FUSE for Python" unless python && File.exist?("/dev/fuse")
    Dir.mktmpdir do |folder|
      @folder = folder
      FileUtils.mkdir(mount_point = File.join(folder, "mounted"))
      program = File.expand_path("../support/stuck_file_system.py", __dir__)
      server = spawn(python, program, mount_point, %i[out err] => File::NULL)
      skip "this user cannot mount" unless mounted?(server)
      example.run
    ensure
      release
      # A fiber that was abandoned has left the file open.
      system("fusermount", "-u", "-z", "-q", mount_point)
      Process.kill(:KILL, server) && Process.wait(server) unless @ended
    end
  end

  def path = File.join(@folder, "mounted", "stuck")

  def release = FileUtils.touch(File.join(@folder, "release"))

  # Nothing cancels the read from then on.
  def until_begun
    sleep(0.001) until File.exist?(File.join(@folder, "begun"))
  end

  def mounted?(server)
    sleep(0.01) until File.exist?(path) || (ended = Process.wait(server, Process::WNOHANG))
    @ended = ended
    !ended
  end

  # A thread without a scheduler lets the read go on when it has run a hundred times.
  def released_by_thread
    running = Thread.new do
      100.times { sleep(a_moment) }
      release
    end
    yield.tap { running.join }
  end

  it "lets other fibers run" do
    turns = 0
    bytes = Heddle.run do
      Fiber.schedule do
        100.times { sleep(a_moment) && (turns += 1) }
        release
      end
      File.open(path) { |file| file.sysread(10) }
    end
    expect([bytes, turns]).to eq(["z" * 10, 100])
  end

  it "lets other fibers run while a fiber that closes the file gets a time limit" do
    seen = []
    Heddle.run do
      file = File.open(path) # rubocop:disable Style/FileOpen
      Fiber.schedule { file.sysread(10) rescue seen << $!.class } # rubocop:disable Style/RescueModifier,Style/SpecialGlobalVars
      until_begun
      Fiber.schedule do
        Timeout.timeout(0.01) { file.close }
      rescue Timeout::Error
        seen << :limited
      end
      100.times { sleep(a_moment) }
      seen << :ran
      release
    end
    expect(seen).to contain_exactly(:ran, IOError, :limited).and start_with(:ran)
  end

  it "lets other threads run while the scheduler is closed" do
    released_by_thread do
      Heddle.run(grace: 0.01) do
        Heddle.spin(background: true) { File.open(path) { |file| file.sysread(10) } }
        until_begun
      end
    end
    expect(File).to exist(File.join(@folder, "release"))
  end
end
