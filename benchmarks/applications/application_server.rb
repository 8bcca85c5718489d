# frozen_string_literal: true

require "etc"
require "rbconfig"
require "socket"
require "tempfile"

# A server in a process of its own: Puma with threads or with `plugin :heddle`, or Async's, also on a Heddle scheduler.
class ApplicationServer
  LIB = File.expand_path("../../lib", __dir__)
  # Seconds for the server to start.
  LIMIT = 30
  HEDDLE = "Puma with plugin :heddle"
  # What Falcon runs: an `Async::HTTP::Server`.
  ASYNC = "Async::HTTP"
  # The same, whose tasks are preempted fibers of Heddle.
  ASYNC_ON_HEDDLE = "Async::HTTP on Heddle"
  # Its threads compute for 10 ms in place of 100 before another one runs, which Ruby 3.4 and newer can do.
  SHORT_SLICE = "Puma, 5 threads, 10 ms slice"
  # Lines of Puma's configuration; nil for another server.
  CONFIGURATIONS = {
    "Puma, 5 threads" => "threads 5, 5",
    SHORT_SLICE => "threads 5, 5",
    "Puma, 64 threads" => "threads 64, 64",
    HEDDLE => "plugin :heddle",
    ASYNC => nil,
    ASYNC_ON_HEDDLE => nil
  }.freeze

  attr_reader :port, :pid

  # @return [Hash{String => String}] servers that cannot run here, each with the reason
  def self.left_out
    async = ("its gems are not installed" unless %w[async-http protocol-rack].all? { |name| version_of(name) })
    @left_out ||= {
      ASYNC => async,
      ASYNC_ON_HEDDLE => async,
      SHORT_SLICE => ("RUBY_THREAD_TIMESLICE needs Ruby 3.4 or newer" if RUBY_VERSION < "3.4")
    }.compact
  end

  # @return [Array<String>] the servers that can run here
  def self.available = CONFIGURATIONS.keys - left_out.keys

  # A server runs without this process's bundle, which need not have its gems.
  #
  # @return [String, nil] the version of the gem that a server uses; nil if the gem is not installed
  def self.version_of(name)
    program = "print Gem::Specification.find_all_by_name(ARGV.first).map(&:version).max"
    version = Bundler.with_unbundled_env { IO.popen([RbConfig.ruby, "-e", program, name], &:read) }
    version unless version.empty?
  end

  # @param name [String] a key of CONFIGURATIONS
  # @param app [String] the name of the rackup file
  # @param variables [Hash{String => String}] of the server's environment
  # @param further [String] further lines of the configuration
  def initialize(name, app, variables = {}, further: "")
    @port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }
    @config = Tempfile.create(%w[puma .rb])
    @config.write("#{CONFIGURATIONS.fetch(name)}\n#{further}\nbind 'tcp://127.0.0.1:#{@port}'\nquiet\n")
    @config.close
    environment = Bundler.unbundled_env.merge("RUBYLIB" => LIB, **variables_of(name), **variables)
    @pid = spawn(environment, RbConfig.ruby, *arguments(name, File.join(__dir__, app)),
                 %i[out err] => File::NULL, unsetenv_others: true)
    wait_until_ready
  end

  def url(path) = "http://127.0.0.1:#{port}#{path}"

  # @return [Float] resident memory in MB
  def memory = File.read("/proc/#{@pid}/status")[/VmRSS:\s+(\d+)/, 1].to_i / 1024.0

  # @return [Float] seconds of CPU time that the server and its worker processes have used
  def cpu = [@pid, *children].sum { |pid| ticks(pid) } / Etc.sysconf(Etc::SC_CLK_TCK).to_f

  def stop
    Process.kill(:TERM, @pid)
    Process.wait(@pid)
    File.unlink(@config.path)
  end

  private

  def variables_of(name)
    case name
    when HEDDLE, ASYNC then { "ISOLATION" => "fiber" }
    when ASYNC_ON_HEDDLE then { "ISOLATION" => "fiber", "RUBYOPT" => "-rheddle/async", "HEDDLE_ASYNC" => "preempt" }
    when SHORT_SLICE then { "ISOLATION" => "thread", "RUBY_THREAD_TIMESLICE" => "10" }
    else { "ISOLATION" => "thread" }
    end
  end

  def arguments(name, app)
    return [File.join(__dir__, "async_http.rb"), app, url("")] if [ASYNC, ASYNC_ON_HEDDLE].include?(name)

    ["-e", 'load Gem.bin_path("puma", "puma")', "--", "-C", @config.path, app]
  end

  def children = File.read("/proc/#{@pid}/task/#{@pid}/children").split

  # User and system time. The name of the program, which may have spaces, is before the last parenthesis.
  def ticks(pid) = File.read("/proc/#{pid}/stat").split(")").last.split.values_at(11, 12).sum(&:to_i)

  def wait_until_ready
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + LIMIT
    begin
      TCPSocket.open("127.0.0.1", port) { |socket| socket.write("GET /hello HTTP/1.0\r\n\r\n") && socket.read }
    rescue Errno::ECONNREFUSED
      raise "Puma has not started" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

      sleep 0.05
      retry
    end
  end
end
