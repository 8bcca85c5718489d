# frozen_string_literal: true

require "puma/plugin"
require "heddle/puma"

Puma::Plugin.create do
  # Puma calls this when it starts, before it forks workers. A plugin that has a method `config` instead makes Puma lose
  # the first setting of the configuration.
  def start(launcher)
    # `heddle/puma` has said why Puma serves with its threads.
    return unless Heddle::PumaSupport.const_defined?(:FiberPool, false)

    settings = launcher.options[:heddle] ||= Heddle::PumaSupport::Settings.new
    launcher.log_writer.log("* Heddle #{Heddle::VERSION}: #{settings}")
  end
end
