# frozen_string_literal: true

require "tmpdir"

RSpec.describe "fork from a fiber of a tree" do
  it "starts a child process with that fiber alone, in which its siblings and children never run" do
    ran = Heddle.run do
      events = Queue.new
      Heddle.spin(background: true) { sleep(a_moment) && events.push(:sibling) }
      forker = Heddle.spin(background: true) do
        Heddle.spin(background: true) { sleep(a_moment) && events.push(:child) }
        in_child do
          # They may have run in the parent before.
          before = events.size
          sleep(a_moment)
          events.size - before
        end
      end
      Heddle.await(forker)
    end

    expect(ran).to eq(0)
  end

  it "starts a child process in which fibers can be spun" do
    value = Heddle.run do
      Heddle.spin(background: true) { sleep }
      in_child do
        # From Ruby 4.0 on a child has no scheduler at first.
        Heddle.run { Heddle.await_all(Heddle.spin { Heddle.move_on_after(0.001, value: :moved_on) { sleep } }) }
      end
    end

    expect(value).to eq([:moved_on])
  end

  it "starts a child process that ends and runs its ensure, although its parent's children aren't there" do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      $stdout.sync = true
      Heddle.run do
        forker = Heddle.spin(background: true) do
          Heddle.spin(background: true) { begin; sleep; ensure; puts "child's ensure in \#{$parent == Process.pid ? "parent" : "child"}"; end }
          Heddle.snooze
          $parent = Process.pid
          pid = fork { begin; sleep a_moment; ensure; puts "forked"; end }
          Process.wait(pid)
          puts $?.success?
        end
        Heddle.await(forker)
      end
    RUBY

    expect([output, errors, status.success?]).to eq(["forked\ntrue\nchild's ensure in parent\n", "", true])
  end

  {
    "the block of Heddle.run" => "Heddle.run { forking { %s } }",
    "a nested block of Heddle.run" => "Heddle.run { Heddle.spin { Heddle.run { forking { %s } } } }",
    "a task" => "Heddle.run { Heddle.spin { forking { %s } }.await }",
    "a fiber of Fiber.schedule" => "Heddle.run { Fiber.schedule { forking { %s } } }"
  }.each do |where, program|
    {
      "returns" => [":nothing", 0, ""], "calls exit" => ["exit 3", 3, ""], "calls abort" => ['abort "a"', 1, "a"],
      "raises" => ['raise "lost"', 1, "lost (RuntimeError)"], "is stopped" => ["Heddle.stop(Fiber.current)", 0, ""]
    }.each do |how, (ending, status, message)|
      it "without a block ends the child with its status where #{where} #{how} in it, beside a child of the parent's" do
        skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0" && how == "is stopped"
        output, errors, = run_ruby(<<~RUBY)
          require "heddle"
          def forking
            other = Heddle.spin { sleep }
            pid = fork or return yield
            Process.wait(pid)
            puts $?.exitstatus
          ensure
            other.stop if pid
          end
          #{format(program, ending)}
        RUBY

        expect([output, errors]).to match(["#{status}\n", /#{Regexp.escape(message)}/])
      end
    end
  end

  it "has its parent's other fibers dead in the child" do
    seen = Heddle.run do
      fiber = Heddle.spin(background: true) { sleep }
      Heddle.snooze
      in_child { Heddle.run { [fiber.state, fiber.await, fiber.stop.equal?(fiber)] } }
    end

    expect(seen).to eq([:dead, nil, true])
  end

  it "leaves none of its parent's fibers in a barrier in the child" do
    seen = Heddle.run do
      barrier = Heddle::Barrier.new
      2.times { barrier.spin { sleep } }
      Heddle.snooze
      in_child { Heddle.run { [barrier.size, barrier.stop.await_all, barrier.spin { :new } && barrier.await_all] } }
    ensure
      barrier.stop
    end

    expect(seen).to eq([0, [], [:new]])
  end

  it "keeps the fiber that forks in its barrier in the child" do
    seen = Heddle.run do
      barrier = Heddle::Barrier.new
      barrier.spin { sleep }
      forker = barrier.spin { in_child { [barrier.size, barrier.empty?] } }
      forker.await
    ensure
      barrier.stop
    end

    expect(seen).to eq([1, false])
  end

  it "without a block continues the fiber in both processes" do
    output, errors, status = run_ruby(<<~RUBY)
      require "heddle"
      $stdout.sync = true
      Heddle.run do
        # One system call for each line: two processes write.
        Heddle.spin(background: true) { sleep a_moment; $stdout.syswrite("sibling\n") }
        forker = Heddle.spin(background: true) do
          pid = fork
          sleep a_moment
          $stdout.syswrite(pid ? "parent\n" : "child\n")
          pid ? Process.wait(pid) : exit!(0)
        end
        Heddle.await(forker)
        sleep a_moment
      end
    RUBY

    expect([output.lines(chomp: true).tally, errors, status.success?])
      .to eq([{ "parent" => 1, "child" => 1, "sibling" => 1 }, "", true])
  end

  it "lets the fiber continue after Process.daemon" do
    skip "Ruby 4.0 takes the scheduler away in the child" if RUBY_VERSION >= "4.0"
    reader, writer = IO.pipe
    run_ruby(<<~RUBY, writer.fileno.to_s, writer => writer)
      require "heddle"
      Heddle.run do
        daemonized = false
        Heddle.spin(background: true) { sleep 0.001 until daemonized; exit!(1) }
        daemon = Heddle.spin(background: true) do
          Process.daemon(true)
          daemonized = true
          sleep a_moment
          value = Heddle.move_on_after(0.001, value: "daemon") { sleep }
          IO.for_fd(Integer(ARGV.first)).write(value)
        end
        Heddle.await(daemon)
      end
    RUBY
    writer.close

    expect(reader.read).to eq("daemon")
  end
end
