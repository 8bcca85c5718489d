# frozen_string_literal: true

require "etc"
require "fileutils"
require "socket"
require "tmpdir"
require_relative "commands"

module Ecosystem
  # Starts servers on free ports, each with a temporary directory of its own.
  class Servers
    # A server that is installed does not start on this machine, whatever the library does.
    class NotStarted < StandardError; end

    include Commands

    # Debian keeps some servers outside of the PATH.
    PLACES = [*ENV.fetch("PATH", "").split(File::PATH_SEPARATOR), *Dir["/usr/lib/postgresql/*/bin"].reverse,
              "/usr/sbin"].freeze
    # PostgreSQL and MariaDB refuse to run as root.
    UNPRIVILEGED_USER = "nobody"
    # Seconds for a server to start.
    LIMIT = 40

    # A server that runs.
    Server = Struct.new(:port, :pid, :folder) do
      def log = File.read(File.join(folder, "log"))

      def stop
        Process.kill(:KILL, -pid)
      rescue Errno::ESRCH
        # It has been killed by a check.
      ensure
        Process.wait(pid)
        FileUtils.rm_rf(folder)
      end
    end

    # The programs that each server needs; nil is a Ruby program in verification/ecosystem/servers/.
    PROGRAMS = {
      postgres: %w[initdb postgres], mariadb: %w[mariadb-install-db mariadbd], redis: %w[redis-server],
      memcached: %w[memcached], rabbitmq: %w[rabbitmq-server]
    }.freeze

    # Below the ports that Linux chooses by itself (net.ipv4.ip_local_port_range).
    ALL_PORTS = 20_000...32_000
    # How many of them a run has for itself.
    PORTS = 1000

    # PostgreSQL accepts connections before it answers them, and then says this in its log.
    READY = { postgres: "database system is ready to accept connections" }.freeze

    def initialize
      @templates = {}
      @lock = Mutex.new
      @port = ALL_PORTS.step(PORTS).find { |first| reserve(first) } || raise("#{ALL_PORTS}: other runs have all ports")
    end

    # @return [Boolean] whether the machine has the programs
    def available?(name) = PROGRAMS.fetch(name, []).all? { |program| find(program) }

    # @return [Server] the server, which accepts connections
    def start(name)
      folder = Dir.mktmpdir("heddle-ecosystem")
      FileUtils.chown(identity[:uid], identity[:gid], folder)
      port = free_port
      command = PROGRAMS.key?(name) ? __send__(name, folder, port) : ruby_program(name, port)
      pid = launch(command, folder)
      server = Server.new(port, pid, folder)
      return server if ready?(name, server)

      log = server.log
      server.stop
      raise NotStarted, "#{name} has not started: #{log[-2000..] || log}"
    end

    def close
      @templates.each_value { |folder| FileUtils.rm_rf(folder) }
      @reservation.close
    end

    private

    def find(name) = PLACES.map { |place| File.join(place, name) }.find { |path| File.executable?(path) }

    # Only one process can have a socket of this name. Otherwise another run on this machine could take a port after it
    # was found to be free, and before its server starts: then a client would reach the server of the other run.
    def reserve(first)
      @reservation = UNIXServer.new("\0heddle-ecosystem-#{first}")
    rescue Errno::EADDRINUSE
      nil
    end

    # Each only once, and none that Linux may give to another process before the server starts.
    def free_port
      port = @lock.synchronize { @port += 1 }
      TCPServer.open("0.0.0.0", port).close
      port
    rescue Errno::EADDRINUSE
      retry
    end

    def identity
      return {} unless Process.uid.zero?

      user = Etc.getpwnam(UNPRIVILEGED_USER)
      { uid: user.uid, gid: user.gid }
    end

    def launch(command, folder)
      environment = { "HOME" => folder, "RUBYOPT" => nil, "RUBYLIB" => nil }
      spawn(environment, *command, %i[out err] => [File.join(folder, "log"), "w"], chdir: folder, pgroup: true,
                                   **identity)
    end

    def ready?(name, server)
      deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + LIMIT
      until accepts?(server.port) && server.log.include?(READY.fetch(name, ""))
        return false if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

        sleep(0.02)
      end
      true
    end

    def accepts?(port)
      TCPSocket.open("127.0.0.1", port, connect_timeout: 1).close
      true
    rescue SystemCallError
      false
    end

    def ruby_program(name, port)
      [RbConfig.ruby, File.expand_path("../servers/#{name}.rb", __dir__), port.to_s]
    end
  end
end
