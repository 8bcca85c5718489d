# frozen_string_literal: true

RSpec.describe "The programs in examples/polyphony/" do
  include ExamplePrograms

  # Sends SIGINT as Ctrl-C does. The process must end by the signal, as the shell expects.
  def interrupt(output, process)
    Process.kill(:INT, process.pid)
    output.read
    expect(process.value.termsig).to eq(Signal.list.fetch("INT"))
  end

  it "echo the input, and print the time meanwhile" do
    run_example("polyphony/echo_and_time", "0.05") do |input, output, process|
      2.times { expect(output.gets).to match(/\ATime: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d/) }
      input.puts("hello")
      input.close
      line = output.gets until line == "hello\n"
      expect(output.gets).to match(/\ATime: /)
      interrupt(output, process)
    end
  end

  it "schedule a suspended fiber with messages" do
    run_example("polyphony/lazy_fiber", "0.01") do |_, output, process|
      expect(Array.new(3) { output.gets }).to eq(["Got O hi!\n"] * 3)
      interrupt(output, process)
    end
  end

  it "let two fibers schedule each other for ever, while a third fiber reads" do
    run_example("polyphony/two_busy_fibers") do |input, output, process|
      expect(Array.new(2000) { output.gets }).to include("f1\n").and include("f2\n")
      input.puts("a line")
      # Ruby writes a line and its end separately, so another fiber's line may come in between.
      line = output.gets until line&.include?("read: a line")
      expect(Array.new(2000) { output.gets }).to include("f1\n").and include("f2\n")
      Process.kill(:INT, process.pid)
      output.read
      expect(process.value.termsig).to eq(Signal.list.fetch("INT"))
    end
  end

  it "move on after some time, or read input that comes in time" do
    run_example("polyphony/move_on", "0.01") do |_, output, process|
      expect(output.read).to eq("You have 0.01 s to type a line.\nYou said nothing.\n")
      expect(process.value).to be_success
    end
    run_example("polyphony/move_on", "60") do |input, output, process|
      input.puts("hello")
      expect(output.read).to end_with("You said: hello\n")
      expect(process.value).to be_success
    end
  end

  it "cancel after some time, or read input that comes in time" do
    run_example("polyphony/cancel", "0.01") do |_, output, process|
      expect(output.read).to end_with("gets was cancelled!\n")
      expect(process.value).to be_success
    end
    run_example("polyphony/cancel", "60") do |input, output, process|
      input.puts("hello")
      expect(output.read).to end_with("hello\n")
      expect(process.value).to be_success
    end
  end

  it "implement a time limit of their own" do
    run_example("polyphony/interrupt", "0.02") do |_, output, process|
      expect(output.read).to eq("In time.\nToo late: timeout\n")
      expect(process.value).to be_success
    end
  end
end
