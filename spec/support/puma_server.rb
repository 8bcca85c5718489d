# frozen_string_literal: true

require "fileutils"
require "json"
require "rbconfig"
require "socket"
require "tmpdir"

# A Puma server in a process of its own, as a user starts it: with a configuration file and a rackup file.
class PumaServer
  # Seconds for the server to start, to answer, and to end.
  LIMIT = 50
  # The exit status where Puma is not installed.
  MISSING = 2
  # Puma sets this only after it has written that it serves, and what the application has written before waits in a
  # buffer.
  PROGRAM = <<~RUBY
    $stdout.sync = true
    begin
      Gem::Specification.find_by_name("puma")
      spec = Gem::Specification.find_by_name(ENV.fetch("PROGRAM", "puma"))
    rescue Gem::MissingSpecError
      exit 2
    end
    load spec.bin_file(ENV.fetch("PROGRAM", "puma"))
  RUBY

  class Missing < StandardError; end

  # The process's id.
  attr_reader :pid
  # The directory of the configuration.
  attr_reader :folder

  # @param app [String] the rackup file
  # @param config [String] the configuration, after `plugin :heddle`
  # @param arguments [Array<String>] of the program
  def initialize(app, config = "", arguments: [], bind: "tcp://127.0.0.1:0", env: {})
    @folder = Dir.mktmpdir("heddle")
    File.write(File.join(@folder, "config.ru"), app)
    File.write(File.join(@folder, "start.rb"), PROGRAM)
    Dir.mkdir(File.join(@folder, "config"))
    # Where `puma` and `rackup` look for it.
    File.write(File.join(@folder, "config/puma.rb"), <<~RUBY)
      plugin :heddle
      bind #{bind.gsub("FOLDER", @folder).dump}
      #{config}
    RUBY
    start(arguments, env)
    raise_unless_ready
  end

  # What the server has written so far: all of it, whenever the thread that reads along got a CPU.
  # @return [String]
  def log
    @reading.synchronize do
      read_what_is_there unless @output.closed?
      @log.dup.force_encoding(Encoding::UTF_8).scrub
    end
  end

  # @return [Integer] the TCP port
  def port = Integer(log[%r{Listening on (?:http|ssl)://127\.0\.0\.1:(\d+)}, 1])

  # Sends a request on a connection of its own, and returns the response's body.
  def get(path) = request("GET #{path} HTTP/1.0\r\n\r\n").split("\r\n\r\n", 2).last

  # Sends text, and returns everything that the server sends until it closes the connection.
  def request(text)
    connect do |socket|
      socket.write(text)
      Timeout.timeout(LIMIT) { socket.read }
    end
  end

  def connect(&) = TCPSocket.open("127.0.0.1", port, &)

  # @return [Hash] what the control server tells; its URL is in the configuration
  def stats
    url = log[%r{control server on http://127\.0\.0\.1:(\d+)}, 1]
    text = TCPSocket.open("127.0.0.1", Integer(url)) do |socket|
      socket.write("GET /stats HTTP/1.0\r\n\r\n")
      socket.read
    end
    JSON.parse(text.split("\r\n\r\n", 2).last)
  end

  # Waits until the control server tells these numbers.
  # @return [Hash] all of them
  def wait_for_stats(wanted)
    told = nil
    Timeout.timeout(LIMIT) { told = stats until told && wanted.all? { |key, value| told[key] == value } }
    told
  rescue Timeout::Error
    raise "the server's statistics are not #{wanted}, but #{told}\n#{log}"
  end

  # Waits until the server has written a line that matches.
  def wait_for_log(pattern)
    Timeout.timeout(LIMIT) { @news.pop until pattern.match?(log) }
  end

  def signal(name) = Process.kill(name, pid)

  # Waits for the end.
  # @return [Process::Status]
  def wait
    raise "Puma has not ended:\n#{log}" unless @process.join(LIMIT)

    @reader.join(LIMIT)
    @process.value
  end

  # Ends the server, by force if need be.
  def stop
    end_process
    @output.close
    FileUtils.rm_rf(@folder)
  end

  private

  def end_process
    signal(:TERM) if @process.alive?
    @process.join(LIMIT) || (signal(:KILL) && @process.join)
  rescue Errno::ESRCH
    # It has ended by itself, as the thread that waits for it is about to tell.
    @process.join
  end

  def start(arguments, env)
    environment = Processes::Fresh.environment
    libraries = [Processes::LIB, environment["RUBYLIB"]].compact.join(File::PATH_SEPARATOR)
    environment = environment.merge("RUBYLIB" => libraries, **env)
    @output, input = IO.pipe
    @pid = spawn(environment, RbConfig.ruby, "start.rb", *arguments,
                 %i[out err] => input, chdir: @folder, unsetenv_others: true)
    input.close
    @process = Process.detach(@pid)
    @log = "".b
    @reading = Mutex.new
    # An item for each time that something was read.
    @news = Thread::Queue.new
    @reader = Thread.new { read_along }
  end

  def read_along
    nil while @output.wait_readable && @reading.synchronize { read_what_is_there }
  rescue IOError
    # `stop` has closed the pipe.
  ensure
    @news.close
  end

  # @return [true, nil] whether there may be more later
  def read_what_is_there
    while (text = @output.read_nonblock(10_000, exception: false)).is_a?(String)
      @log << text
      @news << true
    end
    text && true
  end

  def raise_unless_ready
    @ready = Timeout.timeout(LIMIT) do
      @news.pop until @news.closed? || log.match?(/Use Ctrl-C to stop|Worker 0 .*booted/)
    end
    # The output ends before the process does.
    raise Missing if @news.closed? && @process.join(LIMIT)&.value&.exitstatus == MISSING
  end
end

# Puma servers for examples.
module PumaServers
  include Libraries

  def self.included(group) = group.extend(Shared)

  # Starts a server, and stops it at the end of the block.
  def with_server(app, config = "", **)
    server = PumaServer.new(app, config, **)
    yield server
  rescue PumaServer::Missing
    skip_or_fail_without("puma")
  ensure
    server&.stop
  end

  # For groups of examples.
  module Shared
    # One server for all examples of the group, which have it as `server`. An example begins when the connections of the
    # previous one have ended. Whatever else an application remembers, it has to keep apart by the request.
    #
    # @param library [String] what is missing if the server exits with {PumaServer::MISSING}
    def share_server(app, config = "", library: "puma", **options)
      attr_reader :server

      before(:context) do
        @server = PumaServer.new(app, "activate_control_app 'tcp://127.0.0.1:0', no_token: true\n#{config}", **options)
      rescue PumaServer::Missing
        @server = nil
      end
      before do
        skip_or_fail_without(library) unless server
        server.wait_for_stats("fibers" => 0)
      end
      after(:context) { @server&.stop }
    end
  end
end
