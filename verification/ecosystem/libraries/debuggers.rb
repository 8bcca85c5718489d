# frozen_string_literal: true

require "open3"
require "rbconfig"
require "tmpdir"

module Ecosystem
  # Runs a program in a process of its own, with commands for the debugger on its standard input. The program runs in
  # Heddle.run if the check does.
  module Debugged
    def debugged(program, commands, *)
      program = "require 'heddle'; Heddle.run(#{options}) do\n#{program}\nend" if defined?(Heddle)
      file = File.join(Dir.mktmpdir("heddle-ecosystem"), "program.rb")
      File.write(file, program)
      output, = Open3.capture2e({ "NO_COLOR" => "1", "TERM" => "dumb" }, RbConfig.ruby, "-W0",
                                *$LOAD_PATH.grep(%r{/lib\z}).first(1).map { |path| "-I#{path}" }, *, file,
                                stdin_data: commands)
      output.scan(/seen: \S+/)
    end

    def options
      preempted = Fiber.scheduler.inspect && ARGV.first.include?("preempted")
      "backend: :#{Fiber.scheduler.backend}, preempt: :#{preempted ? "all" : "none"}"
    end
  end
end

Ecosystem.library "debug", requires: "debug/version", version: -> { DEBUGGER__::VERSION } do
  include Ecosystem::Debugged

  def works(_client)
    start = "DEBUGGER__.start(no_sigint_hook: true); load ARGV.shift"
    debugged(<<~RUBY, "p \"seen: \#{value}\"\nvalue = 8\nc\n", "-rdebug/session", "-e", start)
      value = 7
      Fiber.schedule { sleep 0.01; puts "seen: fiber" } if Fiber.scheduler
      puts "seen: fiber" unless Fiber.scheduler
      binding.break
      sleep 0.05
      puts "seen: \#{value}"
    RUBY
      .sort
  end
end

Ecosystem.library "byebug" do
  include Ecosystem::Debugged

  def works(_client)
    debugged(<<~RUBY, "puts \"seen: \#{value}\"\nnext\nputs \"seen: \#{value}\"\ncontinue\n", "-rbyebug")
      value = 7
      byebug
      value = 8
      sleep 0.01
      puts "seen: end"
    RUBY
  end
end

Ecosystem.library "irb", version: -> { IRB::VERSION } do
  include Ecosystem::Debugged

  def works(_client)
    debugged(<<~RUBY, "puts \"seen: \#{value}\"\nsleep 0.01; puts 'seen: slept'\nexit\n", "-rirb")
      value = 7
      binding.irb(show_code: false)
      puts "seen: end"
    RUBY
  end
end
