# frozen_string_literal: true

# Each program runs in a Ruby of its own, as receivers stay for the life of the process.
RSpec.describe "The stalls of Heddle::Web" do
  let(:environment) { { "RACK_ENV" => "test" } }
  let(:preamble) { <<~RUBY }
    require "heddle/web"
    require "json"
    def stalls
      request = { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/stalls.json" }
      JSON.parse(Heddle::Web.call(request)[2].join, symbolize_names: true)[:stalls]
    end
    # On a busy machine other places may stall, too.
    def mine = stalls.select { |stall| stall[:backtrace].to_s.include?("stall_until") }
    #{Stalling::PROGRAM}
    def wait_until = (sleep 0.001 until yield)
  RUBY

  # What the program writes to stdout and stderr.
  def outcome(text)
    output, errors, status = run_ruby(preamble + text, env: environment)
    expect(status).to be_success, errors
    [output, errors]
  end

  it "are listed while they last, and with their end" do
    output, = outcome(<<~RUBY)
      began = Time.now.to_f
      Heddle.run(stall_after: 0.02) do
        lasts = nil
        stall_until { lasts = mine.find { |stall| !stall[:ended] } }
        stall = nil
        wait_until { stall = mine.find { |each| each[:ended] && each[:at] == lasts[:at] } }
        p stall[:duration] >= 0.02, stall[:at].between?(began, Time.now.to_f), mine.count { |each| each[:at] == lasts[:at] }
        puts stall[:location], stall[:backtrace].first
      end
    RUBY

    expect(output).to match(/\Atrue\ntrue\n1\n\S+:\d+\n\S+:\d+:in /)
  end

  it "are still written to $stderr if the program has no receiver" do
    _, errors = outcome(<<~RUBY)
      written = false
      watch_stderr { written = true }
      Heddle.run(stall_after: 0.02) { stall_until { written } }
    RUBY

    expect(errors).to match(/\Aheddle: (a fiber|#<Fiber:.*>) (has )?kept its thread for /)
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
                                  duration: 1.0, ended: true, late_fibers: 0, latest_by: 0.0, count: 1)
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
