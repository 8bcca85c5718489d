# frozen_string_literal: true

# Each program runs in a Ruby of its own, as receivers stay for the life of the process.
RSpec.describe "The stalls of Heddle::Web" do
  program = <<~RUBY
    require "heddle/web"
    require "json"
    def stalls
      request = { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/stalls.json" }
      JSON.parse(Heddle::Web.call(request)[2].join, symbolize_names: true)[:stalls]
    end
    def stall_until = (Integer.sqrt(2) until yield)
    def wait_until = (sleep 0.001 until yield)
  RUBY

  define_method(:outcome) do |text|
    output, errors, status = run_ruby(program + text, env: { "RACK_ENV" => "test" })
    expect(status).to be_success, errors
    [output, errors]
  end

  it "are listed while they last, and with their end" do
    output, = outcome(<<~RUBY)
      Heddle.run(stall_after: 0.02) do
        stall_until { stalls.any? }
        p stalls.map { |stall| stall[:ended] }
        wait_until { stalls.all? { |stall| stall[:ended] } }
        stall, = stalls
        p stalls.size, stall[:duration] >= 0.02, stall[:at].between?(Time.now.to_f - 20, Time.now.to_f)
        puts stall[:location], stall[:backtrace].first
      end
    RUBY

    expect(output).to match(/\A\[false\]\n1\ntrue\ntrue\n\S+:\d+\n\S+:\d+:in /)
  end

  it "are still written to $stderr if the program has no receiver" do
    _, errors = outcome("Heddle.run(stall_after: 0.02) { stall_until { stalls.any? } }")

    expect(errors).to match(/\Aheddle: (a fiber|#<Fiber:.*>) has kept its thread for /)
  end

  it "are not written to $stderr if the program has one" do
    _, errors = outcome("Heddle.on_stall { nil }\nHeddle.run(stall_after: 0.02) { stall_until { stalls.any? } }")

    expect(errors).to eq ""
  end

  it "are the last fifty" do
    output, = outcome(<<~RUBY)
      log = Heddle::Web.const_get(:StallLog)
      60.times do |number|
        backtrace = ["app.rb:\#{number}:in 'a'"]
        stall = Heddle::Stall.new(thread: Thread.main, fiber: nil, backtrace:, native_method: nil,
                                  native_function: nil, duration: 1.0, ended: true, late_fibers: 0, latest_by: 0.0, count: 1)
        log.add(stall)
      end
      puts stalls.size, stalls.first[:location], stalls.last[:location]
    RUBY

    expect(output).to eq "50\napp.rb:59\napp.rb:10\n"
  end

  it "of the parent are not listed in a forked child" do
    output, = outcome(<<~RUBY)
      Heddle.run(stall_after: 0.02) { stall_until { stalls.any? } }
      Process.wait(fork { p stalls.size })
    RUBY

    expect(output).to eq "0\n"
  end
end
