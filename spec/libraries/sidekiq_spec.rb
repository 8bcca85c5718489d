# frozen_string_literal: true

RSpec.describe "A Sidekiq capsule with fibers" do
  include Libraries

  before(:context) { @server = DatabaseServer.redis }

  before { skip_or_fail_without("redis-server") unless @server }

  after(:context) { @server&.stop }

  let(:library) { "sidekiq" }
  let(:environment) { { "REDIS_URL" => "unix://#{File.join(@server.folder, "socket")}" } }
  # `start` starts Sidekiq with a capsule of fibers, and returns it.
  let(:preamble) { <<~RUBY }
    require "concurrent"
    require "sidekiq/api"
    require "heddle/sidekiq"
    Sidekiq.default_configuration.logger = Logger.new(nil)
    # A second attempt would push a job twice.
    Sidekiq.default_configuration.redis = { timeout: 30, pool_timeout: 30, reconnect_attempts: 0 }
    Sidekiq.redis { |redis| redis.call("flushall") }
    class Work
      include Sidekiq::Job
      def perform(*arguments) = $work.call(*arguments)
    end
    # Seconds, after which no processor waits for a job that Sidekiq may push back.
    LONGER_THAN_A_FETCH = 3
    def start(fibers: 20, timeout: 60, **options)
      instance = Sidekiq.configure_embed do |config|
        config.concurrency = fibers
        config[:timeout] = timeout
        config.average_scheduled_poll_interval = 1
        config.default_capsule.fibers!(**options)
      end
      instance.run
      instance
    end
  RUBY

  it "performs a hundred jobs at the same time on one thread" do
    expect(printed(<<~RUBY)).to eq %(["sidekiq.default/fibers"]\n)
      latch = Concurrent::CountDownLatch.new(100)
      names = Queue.new
      $work = -> { latch.count_down; latch.wait && names << Thread.current.name }
      100.times { Work.perform_async }
      sidekiq = start(fibers: 100)
      p Array.new(100) { names.pop }.uniq
      sidekiq.stop
    RUBY
  end

  it "gives each job thread variables of its own" do
    expect(printed(<<~RUBY)).to eq "abc abc\n"
      local = Concurrent::ThreadLocalVar.new
      latch = Concurrent::CountDownLatch.new(3)
      seen = Queue.new
      # All have set theirs when one of them looks.
      $work = lambda do |name|
        Thread.current.thread_variable_set(:job, local.value = name)
        latch.count_down
        latch.wait
        seen << [Thread.current.thread_variable_get(:job), local.value]
      end
      %w[a b c].each { |name| Work.perform_async(name) }
      sidekiq = start
      puts Array.new(3) { seen.pop }.transpose.map { |names| names.sort.join }.join(" ")
      sidekiq.stop
    RUBY
  end

  it "keeps the jobs' states of ActiveSupport apart, without Rails" do
    expect(printed(<<~RUBY)).to eq "abc\n"
      begin
        require "active_support"
        require "active_support/isolated_execution_state"
      rescue LoadError
        exit #{Libraries::MISSING}
      end
      latch = Concurrent::CountDownLatch.new(3)
      seen = Queue.new
      $work = lambda do |name|
        ActiveSupport::IsolatedExecutionState[:job] = name
        latch.count_down
        latch.wait
        seen << ActiveSupport::IsolatedExecutionState[:job]
      end
      %w[a b c].each { |name| Work.perform_async(name) }
      sidekiq = start
      puts Array.new(3) { seen.pop }.sort.join
      sidekiq.stop
    RUBY
  end

  it "names a job's fiber by the job's class and id while the job runs" do
    expect(printed(<<~RUBY)).to eq "true\n"
      names = Queue.new
      $work = -> { names << Heddle.fibers.filter_map(&:name) }
      id = Work.perform_async
      sidekiq = start
      p names.pop.include?("Work \#{id}")
      sidekiq.stop
    RUBY
  end

  it "waits for a job's children, before the next job begins and Sidekiq takes the job for done" do
    expect(printed(<<~RUBY)).to eq "[1, 1, :child, 2, 2, :child]\n"
      noted, ended = [], Queue.new
      $work = lambda do |number|
        gate = Queue.new
        Heddle.spin { gate.pop && sleep(0) && noted.push(number, :child) && number == 2 && ended << true }
        noted << number
        gate << true
      end
      [1, 2].each { |number| Work.perform_async(number) }
      sidekiq = start(fibers: 1)
      ended.pop
      p noted
      sidekiq.stop
    RUBY
  end

  it "retries a job one of whose children has failed" do
    expect(printed(<<~RUBY)).to eq "the child's\n"
      $work = -> { Heddle.spin { raise "the child's" } }
      Work.perform_async
      sidekiq = start
      retries = Sidekiq::RetrySet.new
      sleep 0.01 until retries.size == 1
      puts retries.first["error_message"]
      sidekiq.stop
    RUBY
  end

  it "counts each job that runs in the heartbeat" do
    expect(printed(<<~RUBY)).to eq "[7, 7]\n"
      begun, gate, beats = Queue.new, Queue.new, Queue.new
      Sidekiq.default_configuration.on(:beat) { beats << true }
      $work = -> { begun << true; gate.pop }
      7.times { Work.perform_async }
      sidekiq = start
      7.times { begun.pop }
      # Sidekiq's own first one, which may have begun before the jobs.
      beats.pop
      sidekiq.instance_variable_get(:@launcher).heartbeat
      p [Sidekiq::WorkSet.new.size, Sidekiq::ProcessSet.new.first["busy"]]
      7.times { gate << true }
      sidekiq.stop
    RUBY
  end

  it "pushes jobs back that have not ended when Sidekiq stops, and runs their `ensure`" do
    expect(printed(<<~RUBY)).to eq "[3, 3, true]\n"
      begun, ended = Queue.new, Queue.new
      $work = lambda do
        begun << true
        sleep
      ensure
        ended << true
      end
      3.times { Work.perform_async }
      sidekiq = start(timeout: LONGER_THAN_A_FETCH)
      3.times { begun.pop }
      fibers = Thread.list.find { |thread| thread.name&.end_with?("fibers") }
      sidekiq.stop
      joined = fibers.join.equal?(fibers)
      p [Sidekiq::Queue.new.size, ended.size, joined]
    RUBY
  end

  it "pushes a job back that computes, and lets others run meanwhile" do
    expect(printed(<<~RUBY)).to eq "waited\n1\n"
      done, computes = Queue.new, Queue.new
      $work = ->(name) { name == "computes" ? (computes << true; loop { }) : sleep(a_moment) && done << true }
      Work.perform_async("computes")
      sidekiq = start(timeout: LONGER_THAN_A_FETCH)
      computes.pop
      Work.perform_async("waits")
      done.pop && puts("waited")
      sidekiq.stop
      p Sidekiq::Queue.new.size
    RUBY
  end

  it "finishes the jobs that run when Sidekiq stops, as far as its timeout allows" do
    expect(printed(<<~RUBY)).to eq "[0, 2]\n"
      begun, ended, stopping = Queue.new, Queue.new, Queue.new
      $work = -> { begun << true; stopping.pop; ended << true }
      2.times { Work.perform_async }
      sidekiq = start
      2.times { begun.pop }
      sidekiq.quiet
      2.times { stopping << true }
      sidekiq.stop
      p [Sidekiq::Queue.new.size, ended.size]
    RUBY
  end

  it "loses no job that waits or computes when its process gets TERM, and lets none end twice" do
    expect(printed(<<~RUBY)).to eq "[0, 0]\n[0, 1, 2, 3, 4, 5]\n[0, 0]\n"
      require "rbconfig"
      require "tempfile"
      # Jobs 0 and 1 end; the others would wait or compute for ever in the first process.
      application = Tempfile.new(%w[application .rb]).tap { |file| file.write(<<~'APPLICATION') && file.close }
        require "heddle/sidekiq"
        class Work
          include Sidekiq::Job
          def perform(number)
            Sidekiq.redis { |redis| redis.call("rpush", "begun", number) }
            (number.odd? ? sleep : loop {}) unless number < 2 || ENV["LETS_JOBS_END"]
            Sidekiq.redis { |redis| redis.call("rpush", "ended", number) }
          end
        end
        Sidekiq.configure_server do |config|
          config.logger.level = Logger::FATAL
          config.default_capsule.fibers!
        end
      APPLICATION
      program = 'require "sidekiq/cli"; Sidekiq::CLI.instance.then { |cli| cli.parse(ARGV) && cli.run }'
      launch = lambda do |environment|
        spawn(environment, RbConfig.ruby, "-I", #{Processes::LIB.dump}, "-e", program, "--",
              "-r", application.path, "-t", LONGER_THAN_A_FETCH.to_s, out: File::NULL)
      end
      wait_for = lambda do |count, list|
        Array.new(count) { Sidekiq.redis { |redis| redis.blocking_call(false, "blpop", list, 0).last.to_i } }
      end
      end_process = lambda do |process|
        Process.kill(:TERM, process)
        Process.wait2(process).last.exitstatus
      end

      6.times { |number| Work.perform_async(number) }
      process = launch.call({})
      wait_for.call(6, "begun")
      ended = wait_for.call(2, "ended")
      statuses = [end_process.call(process)]
      process = launch.call({ "LETS_JOBS_END" => "true" })
      ended.concat(wait_for.call(4, "ended"))
      statuses << end_process.call(process)
      p statuses, ended.sort, [Sidekiq::Queue.new.size, Sidekiq.redis { |redis| redis.call("llen", "ended") }]
    RUBY
  end

  it "continues after jobs that raise, and retries them" do
    expect(printed(<<~RUBY)).to eq "[5, 5]\n"
      done = Queue.new
      $work = ->(fails) { fails ? raise("an error") : done << true }
      5.times { Work.perform_async(true) }
      5.times { Work.perform_async(false) }
      sidekiq = start(fibers: 2)
      5.times { done.pop }
      Thread.pass until Sidekiq::RetrySet.new.size == 5
      p [Sidekiq::RetrySet.new.size, Sidekiq::RetrySet.new.map { |job| job["error_message"] }.count("an error")]
      sidekiq.stop
    RUBY
  end

  it "starts its processors without the fiber storage of the program", :regression do
    expect(printed(<<~RUBY)).to eq "nil\n"
      Fiber[:request] = "of the program"
      seen = Queue.new
      $work = -> { seen << Fiber[:request] }
      Work.perform_async
      sidekiq = start
      p seen.pop
      sidekiq.stop
    RUBY
  end

  it "lets jobs push jobs" do
    expect(printed(<<~RUBY)).to eq "inner\n"
      done = Queue.new
      $work = ->(name) { name == "outer" ? Work.perform_async("inner") : done << name }
      Work.perform_async("outer")
      sidekiq = start(fibers: 2)
      puts done.pop
      sidekiq.stop
    RUBY
  end

  it "leaves the processors of other capsules threads" do
    expect(printed(<<~RUBY)).to eq %(["sidekiq.other/processor", "sidekiq.default/fibers"]\n)
      names = Queue.new
      $work = -> { names << Thread.current.name }
      Sidekiq.default_configuration
      sidekiq = Sidekiq.configure_embed do |config|
        config.concurrency = 1
        config.default_capsule.fibers!
        config.capsule("other") { |capsule| capsule.concurrency = 1; capsule.queues = %w[other] }
      end
      sidekiq.run
      seen = %w[other default].map { |queue| Work.set(queue: queue).perform_async && names.pop }
      p seen
      sidekiq.stop
    RUBY
  end
end
