# frozen_string_literal: true

RSpec.describe "A signal while Heddle is loaded" do
  it "is raised if it comes as the extension looks up Thread#raise, and Heddle can be loaded again" do
    output, errors, = run_ruby(<<~RUBY)
      trace = TracePoint.new(:c_return) do |event|
        next unless event.method_id == :instance_method && event.self.equal?(Thread)

        trace.disable
        Process.kill(:INT, Process.pid)
      end
      trace.enable
      begin
        require "heddle"
        puts "lost"
      rescue Interrupt
        puts "raised"
      end
      require "heddle"
      puts Heddle.run { sleep(0) && "loaded" }
    RUBY
    expect([output, errors]).to eq ["raised\nloaded\n", ""]
  end
end
