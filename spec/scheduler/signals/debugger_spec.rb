# frozen_string_literal: true

RSpec.describe "A module with a trap of its own, which was prepended before Heddle was loaded" do
  # As the gem debug does it.
  prepended = <<~RUBY
    $trapped = []
    module Interceptor
      def trap(signal, *, &)
        $trapped << signal
        super
      end
    end
    Kernel.prepend(Interceptor)
    [Kernel, Signal].each { |place| place.singleton_class.prepend(Interceptor) }
    require "heddle"
  RUBY

  ["trap", "Kernel.trap", "Signal.trap"].each do |call|
    it "sees each call of #{call} within Heddle.run, whose handler runs" do
      output, errors, status = run_ruby(<<~RUBY)
        #{prepended}
        Heddle.run do
          signals = Queue.new
          #{call}("USR1") { |number| signals.push(number) }
          Process.kill(:USR1, Process.pid)
          p [Signal.signame(signals.pop), $trapped]
        end
      RUBY
      expect([output, errors, status.success?]).to eq [%(["USR1", ["USR1"]]\n), "", true]
    end
  end

  it "sees none of the calls by which Heddle sets and restores handlers" do
    output, errors, status = run_ruby(<<~RUBY)
      #{prepended}
      Heddle.run { sleep 0 }
      p $trapped
    RUBY
    expect([output, errors, status.success?]).to eq ["[]\n", "", true]
  end
end
