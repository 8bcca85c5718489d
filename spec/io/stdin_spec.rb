# frozen_string_literal: true

require "io/console"
require "pty"
require "tempfile"

RSpec.describe "STDIN" do
  # Counts the runs of a second fiber until STDIN is at its end.
  let(:counting) { <<~RUBY }
    require "heddle"
    done = false
    runs = 0
    Heddle.run do
      Fiber.schedule { (runs += 1; sleep(0.001)) until done }
      $stdin.each_line { |line| puts "got \#{line}"; $stdout.flush }
      done = true
    end
    puts(runs.positive? ? "others ran" : "no other fiber ran")
  RUBY

  let(:echoing) { 'require "heddle"; Heddle.run { while (line = gets) do print "got ", line end }; puts "end"' }

  it "is read while other fibers run, when it is a pipe" do
    output, = run_ruby(counting) do |_pid, input|
      3.times { |i| input.puts(i) }
      input.close
    end

    expect(output).to eq("got 0\ngot 1\ngot 2\nothers ran\n")
  end

  it "lets other fibers run while there is no input" do
    source = <<~RUBY
      require "heddle"
      Heddle.run do
        Fiber.schedule { puts "line: \#{$stdin.gets}" }
        puts "still here"
        # The parent writes its line only after this signal.
        $stdout.flush
        Process.kill(:USR1, #{Process.pid})
      end
    RUBY
    told = Queue.new
    before = trap(:USR1) { told << true }
    output, = run_ruby(source) do |_pid, input|
      told.pop
      input.puts("late")
      input.close
    end

    expect(output).to eq("still here\nline: late\n")
  ensure
    trap(:USR1, before || "DEFAULT")
  end

  it "ends when its pipe is closed" do
    output, = run_ruby(echoing, stdin: "one\n")

    expect(output).to eq("got one\nend\n")
  end

  it "is read when it is a file" do
    output = Tempfile.create do |file|
      file.write("one\ntwo\n")
      file.close
      run_ruby(echoing, in: file.path).first
    end

    expect(output).to eq("got one\ngot two\nend\n")
  end

  it "is at its end when it is /dev/null" do
    expect(run_ruby(echoing, in: File::NULL).first).to eq("end\n")
  end

  it "is read when it is a terminal, while other fibers run" do
    output = PTY.open do |terminal, device|
      device.echo = false
      # Ctrl-D at the start of a line is the end.
      terminal.write("typed\n\u0004")
      run_ruby(counting, in: device).first
    end

    expect(output).to eq("got typed\nothers ran\n")
  end

  it "returns to a read the terminal's input before Ctrl-D" do
    output = PTY.open do |terminal, device|
      device.echo = false
      terminal.write("one\ntwo\n\u0004")
      run_ruby('require "heddle"; print Heddle.run { $stdin.read.upcase }', in: device).first
    end

    expect(output).to eq("ONE\nTWO\n")
  end
end
