# frozen_string_literal: true

# A short run. `rake stress` runs the program for longer.
RSpec.describe "The stress program", timeout: 60 do
  program = File.expand_path("../../verification/stress/preemption.rb", __dir__)
  limit = 50

  def stress(program, limit, **choice)
    environment = { "ROUNDS" => "2", "SIZE" => "15", "SHOTS" => "5" }.merge(choice.transform_keys(&:to_s))
    output, errors, status = run_ruby("load ARGV[0]", program, env: environment, timeout: limit)
    expect(status).to be_success, "#{output}#{errors}#{status.inspect}"
  end

  %w[signal timerfd].product(%w[yielding all]).each do |ticker, preempt|
    it "finds every fiber accounted for with preempt: :#{preempt} and ticker: :#{ticker}" do
      stress(program, limit, TICKER: ticker, PREEMPT: preempt)
    end
  end
end
