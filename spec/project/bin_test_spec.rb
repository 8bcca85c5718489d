# frozen_string_literal: true

require "open3"
require "tmpdir"

RSpec.describe "bin/test" do
  root = File.expand_path("../..", __dir__)

  # Runs these parts, given as source, in an empty folder, and returns what run_ruby returns.
  define_method(:run_parts) do |parts, &interaction|
    Dir.mktmpdir do |folder|
      run_ruby(<<~RUBY, env: { "HEDDLE_TEST_PART" => nil }, &interaction)
        $stdout.sync = true
        Dir.chdir(#{folder.inspect})
        require #{"#{root}/bin/support/checks/plan".inspect}
        require #{"#{root}/bin/support/checks/run".inspect}
        def part(name, command, **facts) = Checks::Part.new(name:, command: ["sh", "-c", command], cpus: 0.1, **facts)
        plan = Checks::Plan.new({}, all: false, seed: 1)
        parts = [#{parts}]
        plan.define_singleton_method(:parts) { parts }
        plan.define_singleton_method(:combinations) { [] }
        exit Checks::Run.new(plan).run
      RUBY
    end
  end

  it "says what there is if an argument is unknown" do
    output, errors, status = Open3.capture3("#{root}/bin/test", "nonsense")
    expect([output, errors, status.exitstatus])
      .to match ["", %r{\Abin/test: there is no 'nonsense'\n.*^bin/test --all }m, 2]
  end

  it "says what there is if the seed is no number" do
    _, errors, status = Open3.capture3("#{root}/bin/test", "--all", "--seed", "x")
    expect([errors, status.exitstatus]).to match [%r{\Abin/test: --seed takes a number below 65536, not 'x'$}, 2]
  end

  it "passes if every part passes" do
    output, _, status = run_parts('part("one", "echo 3 examples, 0 failures")')
    expect([output.lines.last, status.exitstatus]).to eq ["PASSED\n", 0]
    expect(output).to include("one: 3 examples, 0 failures, 0 skipped")
  end

  it "fails if one part fails, runs the others, and shows the log" do
    output, _, status = run_parts('part("one", "echo reason; false"), part("two", "true")')
    expect([output.lines.last, status.exitstatus]).to eq ["FAILED: one\n", 1]
    expect(output).to match(/^reason$/).and match(/^  passed .* two$/)
  end

  it "names at its end the examples that have failed, with their errors" do
    output, = run_parts(<<~'RUBY')
      part("one", <<~LOG.then { |log| "cat <<'END'; false\n#{log}END" })
        Failures:

          1) A pipe holds
             Failure/Error: expect(1).to eq 2

               expected: 2
                    got: 1
             # ./spec/io/pipe_spec.rb:9:in 'x'

        Finished in 1 second
        1 example, 1 failure

        rspec ./spec/io/pipe_spec.rb:8 # A pipe holds
      LOG
    RUBY
    expect(output.lines.last(3).join).to eq <<~TEXT
      Failed:
        one: ./spec/io/pipe_spec.rb:8: expected: 2 got: 1
      FAILED: one
    TEXT
  end

  it "does not run a part that needs one which has failed" do
    output, = run_parts('part("one", "false"), part("two", "true", after: ["one"])')
    expect(output).to match(/^  dropped .* two$/)
  end

  it "fails if a part takes too long, and ends it" do
    output, _, status = run_parts('part("one", "sleep 1000", limit: 0.1)')
    expect([output.lines.last, status.exitstatus]).to eq ["FAILED: one\n", 1]
  end

  it "fails if a part leaves a process, and ends the process" do
    output, _, status = run_parts('part("one", "setsid sleep 1000 & echo $! >&2")')
    expect([output.lines.last, status.exitstatus]).to eq ["FAILED: processes left behind\n", 1]
    left = output[/^  (\d+) \(one\): sleep 1000/, 1].to_i
    expect { Process.kill(0, left) }.to raise_error(Errno::ESRCH)
  end

  it "does not take the end of a part's orphan, whose number a later part may get, for that part's end" do
    output, = Dir.mktmpdir do |folder|
      run_ruby(<<~RUBY, env: { "HEDDLE_TEST_PART" => nil })
        Dir.chdir(#{folder.inspect})
        require #{"#{root}/bin/support/checks/children".inspect}
        children = Checks::Children.new
        part = children.start(["sh", "-c", "sh -c 'echo $$ >orphan; exit 1' &"], {}, "one", "log")
        left = children.left_behind
        p left, children.status(part)&.success?, children.status(Integer(File.read("orphan")))
      RUBY
    end

    expect(output).to eq "[]\ntrue\nnil\n"
  end

  it "ends the processes of its parts after Ctrl-C" do
    pids = nil
    output, _, status = run_parts('part("one", "echo $$ >pid; setsid sleep 1000")') do |pid, _|
      running = -> { Dir["/proc/[0-9]*/stat"].filter_map { |stat| stat[/\d+/].to_i if parent(stat) == pid } }
      sleep(0.01) until (pids = running.call).any?
      Process.kill(:INT, pid)
    end
    expect([output[/^  interrupted .* one$/], status.exitstatus]).to match [String, 130]
    pids.each { |pid| expect { Process.kill(0, pid) }.to raise_error(Errno::ESRCH) }
  end

  def parent(stat)
    File.read(stat)[/.*\) \S (\d+)/m, 1].to_i
  rescue Errno::ENOENT, Errno::ESRCH
    nil
  end
end
