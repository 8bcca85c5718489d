# frozen_string_literal: true

# C code that keeps the GVL: no Ruby code of the process can run meanwhile.
RSpec.describe "A stall in C code that keeps the GVL" do
  # `convert` keeps the GVL for longer than `stall_after:`. On a busy machine a thread stalls elsewhere, too, or is not
  # noticed in time. So the programs call it until the receiver has got what it waits for, and let other threads run in
  # between. The line of `to_s` has no other safe point: a stall there would keep this one from being reported for ten
  # seconds.
  let(:preamble) { <<~RUBY }
    require "heddle"
    NUMBER = 1 << 2_000_000
    $stalls, $ended = Thread::Queue.new, Thread::Queue.new
    def convert
      digits = NUMBER.to_s
      digits.size
    end
    def convert_until_reported = (convert && sleep(0.001) while $stalls.empty?)
    def receive(queue = $stalls) = Heddle.on_stall { |stall| queue << stall if stall.native_method == "Integer#to_s" }
  RUBY

  it "is reported with the method, its caller's place and the backtrace" do
    expect(printed(<<~RUBY)).to match(/\A\[false, "Integer#to_s", "-e:5"\]\n-e:5:in .*to_s'\n-e:5:in .*convert'\n/)
      receive
      Heddle.run(stall_after: 0.02) { Fiber.schedule { convert_until_reported } }
      stall = $stalls.pop
      p [stall.ended?, stall.native_method, stall.location]
      puts stall.backtrace
    RUBY
  end

  it "is reported again when it has ended, with its length" do
    expect(printed(<<~RUBY)).to eq "[\"Integer#to_s\", \"-e:5\", true]\n"
      Heddle.on_stall { |stall| (stall.ended? ? $ended : $stalls) << stall if stall.native_method == "Integer#to_s" }
      Heddle.run(stall_after: 0.02) { convert_until_reported }
      stall = $ended.pop
      p [stall.native_method, stall.location, stall.duration >= $stalls.pop.duration]
    RUBY
  end

  it "is written to $stderr, with the method and its caller's place, if there is no receiver" do
    program = preamble + <<~RUBY
      log = Object.new
      def log.write(line) = STDERR.write(line).tap { $stalls << line if line.include?("Integer#to_s") }
      $stderr = log
      Heddle.run(stall_after: 0.02) { convert_until_reported }
    RUBY
    output, errors, status = run_ruby(program)

    expect([output, status]).to match ["", be_success]
    expect(errors).to match(/^heddle: #<Fiber:.*> has kept its .* \d+\.\d+ s so far: Integer#to_s called at -e:5$/)
  end

  it "is reported with the name that the fiber had" do
    expect(printed(<<~RUBY)).to match(%r{\A#<Heddle::Task:.*> "GET /7"\n\z})
      receive
      Heddle.run(stall_after: 0.02) do
        Heddle.spin(name: "idle", background: true) { sleep }
        worker = Heddle.spin(name: "worker", background: true) do
          while $stalls.empty?
            Heddle.annotate("GET /7") { convert }
            sleep a_moment
          end
        end
        Heddle.await(worker)
      end
      puts $stalls.pop.fiber
    RUBY
  end

  it "is reported with no name if the fiber has lost its name" do
    expect(printed(<<~RUBY)).to match(/\A#<Fiber:.*>\n\z/)
      receive
      Heddle.run(stall_after: 0.02) { Fiber.schedule { Heddle.annotate("GET /7") { nil } || convert_until_reported } }
      puts $stalls.pop.fiber
    RUBY
  end

  it "is reported with the fiber's name after the fiber has ended" do
    expect(printed(<<~RUBY)).to match(/\A#<Heddle::Task:.*> "big"\n\z/)
      receive
      Heddle.run(stall_after: 0.02) do
        while $stalls.empty?
          Heddle.await(Heddle.spin(name: "big") { convert })
          sleep a_moment
        end
      end
      puts $stalls.pop.fiber
    RUBY
  end

  it "is reported after the fiber has raised" do
    expect(printed(<<~RUBY)).to eq "-e:5\n"
      receive
      Heddle.run(stall_after: 0.02) do
        while $stalls.empty?
          begin
            Heddle.await(Heddle.spin { convert && raise("broken") })
          rescue RuntimeError
            sleep a_moment
          end
        end
      end
      puts $stalls.pop.location
    RUBY
  end

  it "is reported at the place of the rescue if the C code raises" do
    expect(printed(<<~RUBY)).to eq "-e:12\n"
      Heddle.on_stall { |stall| $stalls << stall if stall.backtrace.join.include?("convert_in_vain") }
      TEXT = ("a" * 40_000_000) + "\\xff"
      def convert_in_vain = (TEXT.encode("UTF-16") rescue nil)
      Heddle.run(stall_after: 0.02) { convert_in_vain || sleep(0.001) while $stalls.empty? }
      puts $stalls.pop.location
    RUBY
  end

  it "is reported with the program's own line if a library calls the C code" do
    expect(printed(<<~RUBY)).to match(/so far: \S+ called at \S+json\S+:\d+, from -e:12$/)
      require "json"
      Heddle.on_stall { |stall| $stalls << stall if stall.native_method && stall.called_from }
      def generate = JSON.generate([NUMBER])
      Heddle.run(stall_after: 0.02) { generate && sleep(0.001) while $stalls.empty? }
      puts $stalls.pop
    RUBY
  end

  it "is reported for a fiber that is preempted when the C code returns" do
    expect(printed(<<~RUBY)).to match(/\A#<Heddle::Task:.*> "big"\n\z/)
      receive
      Heddle.run(stall_after: 0.02, preempt: :all) do
        Heddle.spin(background: true) { sleep 0.001 while $stalls.empty? }
        Heddle.await(Heddle.spin(name: "big") { convert while $stalls.empty? })
      end
      puts $stalls.pop.fiber
    RUBY
  end

  it "is reported in a forked child of a process that has reported one at the same place" do
    expect(printed(<<~RUBY)).to eq "1\n"
      receive
      Heddle.run(stall_after: 0.02) do
        convert_until_reported
        Process.wait(fork do
          $stalls.clear
          Heddle.run(**(Fiber.scheduler ? {} : { stall_after: 0.02 })) { sleep(a_moment) && convert_until_reported }
          p $stalls.pop.count
        end)
      end
    RUBY
  end

  it "is reported for one scheduler beside another" do
    expect(printed(<<~RUBY)).to eq "true\n"
      receive
      other = Thread.new { Heddle.run(stall_after: 0.02) { convert_until_reported } }
      Heddle.run(stall_after: 0.02) { sleep 0.001 while $stalls.empty? }
      p $stalls.pop.thread == other
      other.join
    RUBY
  end

  it "is reported with garbage collections at each allocation", timeout: 120 do
    # Without RubyGems there is less to mark.
    options = { env: { "RUBYOPT" => "--disable-gems" }, timeout: 100 }
    expect(run_ruby(preamble + <<~RUBY, **options)).to match ["-e:5\n", "", be_success]
      receive
      GC.stress = true
      Heddle.run(stall_after: 0.02) { Fiber.schedule { convert_until_reported } }
      GC.stress = false
      puts $stalls.pop.location
    RUBY
  end

  it "is reported at its end if the scheduler is closed in it" do
    expect(printed(<<~RUBY)).to eq "[\"Integer#to_s\", true]\n"
      Heddle.on_stall { |stall| (stall.ended? ? $ended : $stalls) << stall if stall.native_method == "Integer#to_s" }
      while $stalls.empty?
        Thread.new do
          Fiber.set_scheduler(Heddle::Scheduler.new(stall_after: 0.02))
          Fiber.schedule { sleep(a_moment) && convert && Fiber.scheduler.close }
        end.join
      end
      stall = $ended.pop
      p [stall.native_method, stall.duration >= $stalls.pop.duration]
    RUBY
  end

  it "may end while the scheduler is closed" do
    expect(printed(<<~RUBY)).to eq "done\n"
      Heddle.on_stall { nil }
      40.times { |number| Heddle.run(stall_after: 0.01) { Integer.sqrt(10**(30_000 + (number * 1000))) } }
      puts "done"
    RUBY
  end
end
