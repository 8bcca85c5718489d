# frozen_string_literal: true

# RUBYOPT loads this into Puma's tests, and into the servers that they start: every server but Puma's control server
# runs on Heddle.
require "heddle/puma"

module Torture
  # Gives the servers of tests the settings that a configuration with `plugin :heddle` gives.
  module HeddleSettings
    def of(options)
      super || (@default ||= Heddle::PumaSupport::Settings.new if options[:is_control] == false)
    end
  end

  # Tells apart the control server.
  module ControlServer
    def initialize(app, events = nil, options = {})
      super
      @options[:is_control] = defined?(Puma::App::Status) ? app.is_a?(Puma::App::Status) : false
    end
  end
end

Heddle::PumaSupport::Settings.singleton_class.prepend(Torture::HeddleSettings)
Puma::Server.prepend(Torture::ControlServer)
