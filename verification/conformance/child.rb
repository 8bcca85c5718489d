# frozen_string_literal: true

# Runs in a process of its own, with the tree's test/unit in the load path:
#
#   ruby child.rb list TREE STAGE              prints "file Class#method" for each test
#   ruby child.rb run TREE STAGE FILE TEST     runs one of them

command, tree, stage, file, test = ARGV
ARGV.clear

# Otherwise `fork` writes the buffer to a file, and the fiber that forks has to wait for that. Some tests rely on
# `fork` never waiting.
$stdout.sync = true

require File.join(tree, "tool/test/init")
require "core_assertions"
require_relative "../torture/child_process"

def list(stage)
  seen = []
  Dir[File.join(stage, "test_*.rb")].each do |path|
    require path
    (Test::Unit::TestCase.subclasses - seen).sort_by(&:name).each do |suite|
      seen << suite
      suite.public_instance_methods.grep(/\Atest/).sort.each { |name| puts "#{File.basename(path)} #{suite}##{name}" }
    end
  end
  # The suite runs itself at exit otherwise.
  exit!(true)
end

case command
when "list" then list(stage)
when "run"
  Torture::ChildProcess.answer
  exit Test::Unit::AutoRunner.run(true, stage, ["--name=#{test}", "--show-skip", file])
end
