# frozen_string_literal: true

require "heddle/web"

RSpec.describe Heddle::Web do
  include WebRequests

  it "reports the process and each scheduler, with its thread, its backend and its numbers" do
    run_with_web do
      expect(web("/stats.json").data).to include(pid: Process.pid, ruby: RUBY_VERSION, heddle: Heddle::VERSION)
      expect(own_scheduler("/stats.json")).to include(
        thread: Thread.current.inspect, backend: Fiber.scheduler.backend.to_s,
        stats: include(fibers: include(running: 1), busy_duration: Float, elapsed: Float)
      )
    end
  end

  it "reports schedulers of other threads, from a thread without one" do
    ready = Thread::Queue.new
    done = Thread::Queue.new
    thread = Thread.new do
      Thread.current.name = "the other one"
      Heddle.run { Heddle.annotate("far away") { (ready << true) && done.pop } }
    end
    ready.pop
    schedulers = web("/stats.json").data[:schedulers]
    fibers = web("/fibers.json?q=far+away").data[:schedulers].flat_map { |each| each[:fibers] }

    expect(schedulers).to include(include(thread: "the other one", lag: nil))
    expect(fibers).to include(include(name: "far away", match: true))
  ensure
    done << true
    thread.join
  end

  it "says what fibers wait for without looking through all objects, and leaves Queue as Ruby has made it" do
    expect(printed(<<~'RUBY')).to eq "[[\"socket 127.0.0.1:N\"], 2]\n[Thread::Queue, Object]\n"
      require "heddle/web"
      require "json"
      Heddle::Web.authorize { true }
      ObjectSpace.define_singleton_method(:each_object) { |*| raise "looks through all objects" }
      get = lambda do |path|
        env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => path, "SCRIPT_NAME" => "", "QUERY_STRING" => "",
                "REMOTE_ADDR" => "127.0.0.1", "HTTP_HOST" => "localhost" }
        JSON.parse(Heddle::Web.call(env).last.join, symbolize_names: true)
      end
      Heddle.run do
        server = TCPServer.new("127.0.0.1", 0)
        client = TCPSocket.new("127.0.0.1", server.addr[1])
        readers = Array.new(2) { Heddle.spin { client.read(1) } }
        sleep 0
        waits = get.call("/names.json")[:waits].find { |group| group[:waiting_for].include?("socket") }
        texts = get.call("/fibers.json")[:schedulers].flat_map { |each| each[:fibers].map { |fiber| fiber[:waiting_for] } }
        p [texts.grep(/socket/).map { |text| text[/socket .*/].sub(/:\d+/, ":N") }.uniq, waits[:count]]
        readers.each { |reader| Heddle.stop(reader) }
      end
      p Thread::Queue.ancestors.first(2)
    RUBY
  end

  it "leaves out schedulers that have ended" do
    id = Heddle.run { Fiber.scheduler.object_id }

    ["/stats.json", "/fibers.json"].each do |path|
      expect(web(path).data[:schedulers].map { |each| each[:id] }).not_to include(id)
    end
  end

  it "measures the lag while it is asked, and adds one fiber for that" do
    run_with_web do
      3.times { expect(own_scheduler("/stats.json")[:lag]).to be >= 0 }

      expect(Heddle.fibers.count { |fiber| fiber.name == "heddle: lag" }).to eq 1
    end
  end

  it "reports how late fibers are beside a fiber that keeps the thread" do
    run_with_web do
      web("/stats.json")
      finish = Clock.now + 0.35
      Integer.sqrt(2) until Clock.now > finish

      expect(own_scheduler("/stats.json")[:lag]).to be >= 0.099
    end
  end

  it "measures no lag before it is asked" do
    run_with_web do
      web("/fibers.json")

      expect(Heddle.fibers.filter_map(&:name)).to be_empty
    end
  end

  it "reports the histograms of stats: :detailed" do
    run_with_web(stats: :detailed) do
      sleep(0)

      expect(own_scheduler("/stats.json").dig(:stats, :run_queue, :scheduled_duration))
        .to include(:count, :max, :p99, :buckets)
    end
  end

  it "makes JSON of names and places in any encoding" do
    run_with_web do
      names = ["\xFF\xFE", "caf\u00E9".encode("UTF-16LE"), "\xE9".b, "+AGE-".dup.force_encoding("UTF-7")]
      names.each { |name| Heddle.spin(name:, background: true) { sleep } }
      Heddle.snooze

      expect(own_scheduler("/fibers.json")[:fibers].filter_map { |fiber| fiber[:name] })
        .to contain_exactly("\uFFFD\uFFFD", "caf\u00E9", "\uFFFD", String)
    end
  end

  # Ruby behaves differently from the first Ractor until the process ends.
  it "answers beside Ractors, whose schedulers are refused" do
    output = printed(<<~RUBY)
      require "heddle/web"
      require "json"
      Warning[:experimental] = false
      ENV["RACK_ENV"] = "test"
      ractors = Array.new(2) { Ractor.new { Heddle.run { sleep } rescue $!.class.to_s } }
      Heddle.run(stats: :detailed) do
        print Thread.new { ractors.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take } }.value
        %w[names fibers stats stalls].each do |name|
          env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/\#{name}.json", "HTTP_HOST" => "localhost" }
          status, _, body = Heddle::Web.call(env)
          print [status, JSON.parse(body.first)["schedulers"]&.size]
        end
      end
    RUBY

    expect(output).to eq '["Ractor::UnsafeError", "Ractor::UnsafeError"][200, nil][200, 1][200, 1][200, nil]'
  end

  describe "the measurement of the lag that a request starts" do
    let(:probe) { Heddle.const_get(:LagProbe) }

    # The measurement lasts for ever.
    before { allow(probe).to receive(:run_for) { probe.new.start } }

    it "does not keep a scheduler from ending", :regression do
      expect(Heddle.run { web("/stats.json").status }).to eq 200
    end

    it "does not keep a Heddle.run within Heddle.run from ending, and lasts after it", :regression do
      run_with_web do
        status = Heddle.run { web("/stats.json").status }

        expect([status, probe.of(Fiber.scheduler)&.running?]).to eq [200, true]
      end
    end

    it "lasts after the fiber and the time limit of the request that has started it" do
      run_with_web do
        Heddle.cancel_after(60) { Heddle.await(Heddle.spin { web("/stats.json") }) }

        expect(probe.of(Fiber.scheduler)&.running?).to be true
      end
    end

    it "starts again after a program has stopped it" do
      run_with_web do
        web("/stats.json")
        Heddle.stop(Heddle.fibers.find { |fiber| fiber.name == "heddle: lag" }.fiber)
        web("/stats.json")
        Heddle.snooze

        expect(Heddle.fibers.count { |fiber| fiber.name == "heddle: lag" }).to eq 1
      end
    end

    it "lasts while another fiber waits" do
      running = Heddle.run do
        web("/stats.json")
        # Longer than the time between two measurements.
        sleep 0.6 # at least
        probe.of(Fiber.scheduler)&.running?
      end

      expect(running).to be true
    end
  end
end
