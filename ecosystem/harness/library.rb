# frozen_string_literal: true

require "json"

# Runs libraries against real servers, on plain threads and in Heddle's fibers.
module Ecosystem
  # What a file in ecosystem/libraries/ describes. An instance lives in the child process that runs the checks.
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
  end

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
      @pause&.kill
      Process.kill(:STOP, pid)
      @pause = Thread.new do
        sleep(seconds)
        Process.kill(:CONT, pid)
      end
    end

    def resume
      @pause&.kill
      Process.kill(:CONT, pid)
    end
  end

  class << self
    def libraries = (@libraries ||= {})

    # @param title [String] the library's name
    # @param requires [String, Array<String>] what to require
    # @param server [Symbol, nil] a server of {Servers}
    # @param version [String, Proc, nil] the gem's name, if it differs from the title, or what returns the version
    # @param remark [String, nil] for the table
    def library(title, requires: title, server: nil, version: nil, remark: nil, &definition)
      libraries[title] = Class.new(Library) do
        self.title = title
        self.requires = requires
        self.server = server
        self.version = version
        self.remark = remark
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
        define_singleton_method(:load_version) do
          require "heddle/offload/#{adapter}" if defined?(Heddle)
          super()
        end
      end
    end
  end
end
