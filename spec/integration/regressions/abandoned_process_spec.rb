# frozen_string_literal: true

RSpec.describe "A fiber that waits for a child process" do
  before { skip "there are no descriptors of processes here" unless File.directory?("/proc/self/fd") }

  preamble = <<~RUBY
    require "heddle"
    def process_descriptors
      Dir.children("/proc/self/fd").count do |number|
        File.readlink("/proc/self/fd/\#{number}").include?("pidfd")
      rescue SystemCallError
        false
      end
    end
    child = spawn("sleep 60")
    at_exit { Process.kill(:KILL, child) rescue nil }
  RUBY

  # The fiber is terminated twice and waits again in its `ensure`, so it is abandoned without being unwound.
  it "leaves no descriptor behind when it is abandoned" do
    output, errors, = run_ruby(<<~RUBY)
      #{preamble}
      thread = Thread.new do
        Thread.current.report_on_exception = false
        Fiber.set_scheduler(Heddle::Scheduler.new)
        Fiber.schedule { begin Process.wait(child); ensure Process.wait(child); end }
        puts process_descriptors
        raise Interrupt
      end
      begin
        thread.raise(Interrupt) until thread.join(0.05)
      rescue Interrupt
        puts process_descriptors
      end
    RUBY

    expect([output, errors]).to eq ["1\n0\n", ""]
  end

  it "leaves its descriptor to the parent when another fiber forks" do
    skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"

    output, errors, = run_ruby(<<~RUBY)
      #{preamble}
      Heddle.run do
        Fiber.schedule { Process.wait(child) }
        forked = fork do
          sleep(0)
          $stdout.syswrite(process_descriptors)
          exit!
        end
        Process.wait(forked)
        Process.kill(:KILL, child)
      end
    RUBY

    expect([output, errors]).to eq ["0", ""]
  end
end
