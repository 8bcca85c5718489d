# frozen_string_literal: true

require "tmpdir"
require_relative "computing"

# Fibers that load the same file, which computes and waits. It must be loaded once, and no fiber may see half of it.
module Requiring
  FIBERS = 3
  SOURCE = <<~RUBY
    module %<name>s
      Computing.fibonacci(14)
      sleep 0.001
      LOADED = (defined?(LOADED) ? LOADED : 0) + 1
      Computing.fibonacci(14)
      COMPLETE = true
    end
  RUBY

  module_function

  def requires(world)
    name = "Loaded#{world.object_id}x#{world.ledger.entries.size}"
    directory = Dir.mktmpdir("heddle-stress")
    path = File.join(directory, "#{name}.rb")
    File.write(path, format(SOURCE, name:))
    FIBERS.times { world.ledger.fiber(:require) { load_once(world.ledger, path, name) } }
    world.afterwards { FileUtils.remove_entry(directory) }
  end

  def load_once(ledger, path, name)
    require path
    loaded = Object.const_get(name)
    ledger.check(:require, [loaded::LOADED, loaded::COMPLETE], [1, true])
  end
end
