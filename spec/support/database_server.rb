# frozen_string_literal: true

require "etc"
require "fileutils"
require "tmpdir"

# A database server for the specs alone, listening on a UNIX socket in a temporary directory of its own.
class DatabaseServer
  # Debian keeps PostgreSQL's programs outside of the PATH.
  PLACES = [*ENV.fetch("PATH", "").split(File::PATH_SEPARATOR), *Dir["/usr/lib/postgresql/*/bin"].reverse].freeze
  # PostgreSQL refuses to run as root.
  UNPRIVILEGED_USER = "nobody"
  # Seconds for the server to start.
  LIMIT = 30

  class << self
    # Both methods return a server, or nil if the machine doesn't have the program.
    def redis
      return unless (redis = find("redis-server"))

      new(/Ready to accept connections/) do |folder|
        [redis, "--port", "0", "--unixsocket", File.join(folder, "socket"), "--save", ""]
      end
    end

    def postgres
      initdb, postgres = %w[initdb postgres].map { |name| find(name) }
      return unless initdb && postgres

      new(/ready to accept connections/) do |folder, options|
        data = File.join(folder, "data")
        system(initdb, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync",
               out: File::NULL, exception: true, **options)
        [postgres, "-D", data, "-k", folder, "-c", "listen_addresses=", "-F"]
      end
    end

    private

    def find(name) = PLACES.map { |place| File.join(place, name) }.find { |path| File.executable?(path) }
  end

  # The directory of the server's socket.
  attr_reader :folder

  # The block gets the directory and the options of spawn, and returns the command. The command prints a line that
  # matches `ready` as soon as the server accepts connections.
  def initialize(ready)
    @folder = Dir.mktmpdir("heddle")
    options = { chdir: @folder, **identity }
    FileUtils.chown(options[:uid], options[:gid], @folder)
    output, input = IO.pipe
    @process = Process.detach(spawn(*yield(@folder, options), %i[out err] => input, **options))
    input.close
    @output = output
    started = Thread::Queue.new
    @reader = Thread.new { read_along(ready, started) }
    raise "#{@folder}: the server has not started" unless started.pop(timeout: LIMIT)
  end

  def stop
    Process.kill(:KILL, @process.pid)
    @process.join
    @reader.kill.join
    @output.close
    FileUtils.rm_rf(@folder)
  end

  private

  # Reads until the server ends. With a full pipe the server would wait for ever.
  def read_along(ready, started)
    started << true if @output.each_line.any? { |line| ready.match?(line) }
    started.close
    IO.copy_stream(@output, File::NULL)
  end

  def identity
    return {} unless Process.uid.zero?

    user = Etc.getpwnam(UNPRIVILEGED_USER)
    { uid: user.uid, gid: user.gid }
  end
end
