# frozen_string_literal: true

require "json"

# Runs libraries against real servers, on plain threads and in Heddle's fibers.
module Ecosystem
  # What a file in libraries/ describes. An instance lives in the child process that runs the checks.
  #
  # The block of {Ecosystem.library} defines some of these methods:
  #
  # - `connect`: a client, or whatever the other methods need
  # - `wait(client, seconds)`: a call that the server answers after that time
  # - `usable?(client)`: a short call; true if its answer is right
  # - `works(client)`: a few calls of the library; the value must be the same in fibers as on threads
  # - `die(client)`: ends the client's other side; the default kills the server
  class Library
    # Each check needs these methods.
    CHECKS = {
      "works" => %i[works],
      "waits" => %i[wait],
      "timeout" => %i[wait usable?],
      "kill" => %i[wait usable?],
      "dies" => %i[wait usable? die]
    }.freeze

    class << self
      attr_accessor :title, :requires, :server, :version, :remark
      attr_writer :weak

      def weak = @weak || []

      def checks = CHECKS.select { |_, methods| methods.all? { |name| method_defined?(name) } }.keys

      def killable = define_method(:die) { |_client| server.kill }

      # @return [String, nil] the version, if the library is installed
      def load_version
        Array(requires).each { |name| require name }
        return version.call.to_s if version.respond_to?(:call)

        # Debian keeps some libraries outside of RubyGems' folders; those have no loaded specification.
        name = version || title
        (Gem.loaded_specs[name] || Gem::Specification.find_by_name(name)).version.to_s
      end
    end

    attr_reader :server

    def initialize(server)
      @server = server
    end

    def connect = nil

    # Whether an adapter of Heddle runs the library's calls.
    def offloaded? = false
  end

  # Seconds that only a hang takes, for the limits that libraries ask for.
  LIMIT = 20

  # Several tasks may pause a server at once.
  LOCK = Mutex.new

  # The server, seen from the child process.
  RunningServer = Struct.new(:port, :pid, :folder) do
    def self.from_environment
      new(*JSON.parse(ENV.fetch("ECOSYSTEM_SERVER")))
    end

    # The process and its children.
    def kill = Process.kill(:KILL, -pid)

    # Stops the server's process for this time: for servers that answer everything at once. An earlier pause, which
    # may have been of a check before, no longer ends this one.
    def pause(seconds)
      LOCK.synchronize do
        end_pause
        Process.kill(:STOP, pid)
        Thread.pass until stopped?
        @pause = Thread.new do
          sleep(seconds)
          Process.kill(:CONT, pid)
        end
      end
    end

    def resume
      LOCK.synchronize do
        end_pause
        Process.kill(:CONT, pid)
      end
    end

    private

    # Joined, so that its signal does not come later.
    def end_pause = @pause&.kill&.join

    # A thread of the server takes the signal only when it next runs.
    def stopped?
      Dir["/proc/#{pid}/task/*/stat"].all? { |file| File.read(file)[/.*\) (\S)/m, 1] == "T" }
    end
  end

  class << self
    def libraries = (@libraries ||= {})

    # @param title [String] the library's name
    # @param facts [Hash]
    #   - `requires` [String, Array<String>] what to require; the title by default
    #   - `server` [Symbol, nil] a server of {Servers}
    #   - `version` [String, Proc, nil] the gem's name, if it differs from the title, or what returns the version
    #   - `remark` [String, nil] for the table
    #   - `weak` [Array<String>] the columns of {Verdict::COLUMNS} in which the library may be worse than on threads, or
    #     fail on both; the remark says why. A fault in another column fails the run.
    def library(title, **facts, &definition)
      libraries[title] = Class.new(Library) do
        self.title = title
        self.requires = title
        facts.each { |name, value| public_send("#{name}=", value) }
        killable if server
        class_eval(&definition)
      end
    end

    # The same library, with an adapter of Heddle in fibers.
    def offloaded(title, adapter)
      original = libraries.fetch(title)
      libraries["#{title}, offloaded"] = Class.new(original) do
        self.title = "#{title}, offloaded"
        self.requires = original.requires
        self.server = original.server
        self.version = original.version || title
        define_method(:offloaded?) { !!defined?(Heddle) }
        define_singleton_method(:load_version) do
          require "heddle/offload/#{adapter}" if defined?(Heddle)
          super()
        end
      end
    end
  end
end
