# frozen_string_literal: true

require "etc"

RSpec.describe "The timer slack" do
  prctl = { "x86_64" => 157, "aarch64" => 167 }[Etc.uname[:machine]]
  set_slack = 29
  slack = -> { syscall(prctl, 30) }
  default = 50_000

  around do |example|
    skip "only Linux tells the slack of a process" unless prctl && File.exist?("/proc/self/timerslack_ns")

    before = slack.call
    syscall(prctl, set_slack, default)
    example.run
    syscall(prctl, set_slack, before)
  end

  # Runs the block in a fiber whose thread has waited for a timer, and beside another one that waits for one.
  define_method(:after_wait) do |&block|
    Heddle.run do
      Heddle.spin(background: true) { loop { sleep(a_moment) } }
      sleep(a_moment)
      block.call
    end
  end

  it "of a thread is the same after a wait as before it" do
    expect(after_wait(&slack)).to eq(default)
  end

  it "of a child process that a fiber has started is that of the thread" do
    given = after_wait do
      IO.pipe do |reader, writer|
        child = spawn("cat", "/proc/self/timerslack_ns", out: writer)
        writer.close
        reader.read.tap { Process.wait(child) }
      end
    end

    expect(Integer(given)).to eq(default)
  end

  it "of a thread that a fiber has started is that of its creator" do
    expect(after_wait { Thread.new(&slack).value }).to eq(default)
  end
end
