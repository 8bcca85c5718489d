# frozen_string_literal: true

# Where tasks of Async cannot run on a Heddle scheduler, or might be expected not to.
RSpec.describe "heddle/async, where it is not expected" do
  include Libraries

  let(:library) { "async" }
  let(:preamble) { "require \"heddle/async\"\n" }

  {
    "leaves the thread a scheduler of Async's that was set by hand" => [<<~RUBY, "Async::Scheduler\n"],
      Heddle::Async.default!(preempt: :all)
      Fiber.set_scheduler(Async::Scheduler.new)
      Async { puts Fiber.scheduler.class }
    RUBY
    "names the alternative to Heddle.run on Async's own scheduler" => [<<~RUBY, <<~TEXT],
      Sync do
        Heddle.run { puts "never" }
      rescue => e
        puts e.message
        puts Thread.new { Heddle.run { Async { Fiber.scheduler.class }.wait } }.value
      end
    RUBY
      Heddle.run needs a Heddle::Scheduler of its own, but this thread's scheduler is a Async::Reactor: wrap the call in a thread, Thread.new { Heddle.run { } }.value
      Heddle::Scheduler
    TEXT
    "runs Heddle.run in a task on a Heddle scheduler" => [<<~RUBY, "true\n"],
      Heddle::Async.default!
      Async { |task| puts Heddle.run { Async { |other| other.reactor.equal?(task.reactor) }.wait } }
    RUBY
    "gives a thread without a scheduler Async's own, or what default! says" => [<<~RUBY, "Async::Reactor\nHeddle::Scheduler\n"],
      Heddle.run do
        2.times do
          puts Thread.new { Async { Fiber.scheduler.class }.wait }.value
          Heddle::Async.default!
        end
      end
    RUBY
    "runs in a forked child of a task" => [<<~RUBY, "Heddle::Scheduler\n[:completed]\n"],
      Heddle::Async.default!(preempt: :all)
      $stdout.sync = true
      Async do
        waiting = Async { sleep 0 }
        # Ruby 4.0 takes the scheduler away in the child, where `Fiber.scheduler` is nil on Async's own, too.
        Process.wait(fork { Async { |task| puts task.reactor.class }.wait; exit!(0) })
        waiting.wait
        p [waiting.status]
      end
    RUBY
    "waits for the tasks of a forked child that begins in a blocking fiber" => [<<~RUBY, "task\nend\n"],
      Heddle::Async.default!
      $stdout.sync = true
      Async do
        worker = Fiber.new(blocking: true) do
          fork do
            Async { sleep(a_moment) && puts("task") }
            puts "end"
          end
        end
        Process.wait(worker.resume)
      end
    RUBY
    "names the alternative in a Ractor" => [<<~RUBY, "Ractor::UnsafeError: true\n"]
      Heddle::Async.default!
      Warning[:experimental] = false
      ractor = Ractor.new do
        Thread.current.report_on_exception = false
        Async { puts "never" }
      rescue Exception => e
        "\#{e.class}: \#{e.message.include?("works only in the main Ractor (Heddle::RactorPool")}"
      end
      puts ractor.respond_to?(:take) ? ractor.take : ractor.value
    RUBY
  }.each do |what, (program, expected)|
    it what do
      expect(printed(program)).to eq expected
    end
  end

  {
    "a reactor" => "Async::Reactor.new",
    "a reactor with a selector" => "Async::Reactor.new(selector: IO::Event::Selector.new(Fiber.current))",
    "a reactor after default!" => "(Heddle::Async.default!; Async::Reactor.new)"
  }.each do |what, call|
    it "refuses #{what} on a thread with a Heddle scheduler, and names the alternative" do
      expect(printed(<<~RUBY)).to eq <<~TEXT
        Heddle.run do
          #{call}
        rescue => e
          puts e.message
          Async { puts "task" }
        end
      RUBY
        Async::Reactor.new: this thread's scheduler is a Heddle::Scheduler, on which tasks run: call Async { } in it
        task
      TEXT
    end
  end

  it "stays off with a version of Async that lacks something, and says so" do
    skip_or_fail_without(library) unless run_ruby("require 'async'").last.success?
    output, errors, = run_ruby(<<~RUBY)
      require "async"
      Async::Children.undef_method(:adjust_transient_count)
      require "heddle/async"
      Async { puts Fiber.scheduler.class }
      begin
        Heddle::Async.default!
      rescue Heddle::IncompatibleLibraryError => e
        puts e.message
      end
    RUBY
    said = "Async's tasks do not run on Heddle's schedulers, because async #{errors[/async ([\d.]+) differs/, 1]} " \
           "differs from 2.46.0, with which this was last right: Async::Children#adjust_transient_count is missing\n"
    expect([output, errors]).to eq ["Async::Reactor\n#{said}", "Heddle: #{said}"]
  end

  it "spares Async's gems, and those that they are built on" do
    expect(printed(<<~RUBY)).to eq "[]\n"
      names = Gem::Specification.find_by_name("async").runtime_dependencies.map(&:name)
      p names.push("async").reject { |name| Heddle::Async::COOPERATIVE.any? { |entry| File.fnmatch(entry, name) } }
    RUBY
  end
end
