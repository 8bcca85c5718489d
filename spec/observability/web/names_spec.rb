# frozen_string_literal: true

require "heddle/web"

RSpec.describe Heddle::Web do
  include WebRequests

  def report(query = "") = web("/names.json?#{query}").data

  def row(name) = report[:names].find { |each| each[:name] == name }

  # A server's fiber for each name, which has waited.
  def with_fibers(*names, **)
    run_with_web(stats: :detailed, **) do
      names.each { |name| Heddle.spin(name:, background: true) { Thread::Queue.new.pop } }
      until_others_wait
      yield
    end
  end

  it "reports the requests and jobs by name, and where their time went" do
    with_fibers("GET /orders/7", "GET /orders/8") do
      expect(row("GET /orders/:id")).to include(kind: "request", running: 2, finished: 0, per_second: 0.0,
                                                ran: be >= 0, runnable: be >= 0, waited: { block: be > 0 })
    end
  end

  it "counts while it is asked, also without stats: :detailed" do
    run_with_web do
      report
      Heddle.spin(name: "GET /", background: true) { Thread::Queue.new.pop }
      until_others_wait

      expect(row("GET /")).to include(running: 1)
    end
  end

  it "says how much of the last minutes it has counted" do
    with_fibers("GET /") { expect(report("window=300")).to include(window: 300.0, seconds: be_between(0, 300)) }
  end

  it "groups the fibers that wait, the largest group first" do
    with_fibers("GET /1", "GET /2") do
      Heddle.spin(name: "GET /3", background: true) { sleep }
      Heddle.snooze
      waits = report("only=named").slice(:waiting, :described, :waits)

      popped = %r{\AQueue#pop on one made at .*names_spec.rb:15 \(by "GET /\d"\)\z}
      expect(waits).to match(waiting: 3, described: 3, waits: [
                               { waiting_for: popped, count: 2, longest: be > 0 },
                               { waiting_for: "sleep", count: 1, longest: be >= 0 }
                             ])
    end
  end

  it "groups fibers that say the same, whatever the details" do
    with_fibers do
      3.times do |id|
        Heddle.spin(name: "GET /", background: true) { Heddle.waiting_for("a permit", detail: -> { id }) { sleep } }
      end
      Heddle.snooze

      expect(report("only=named")[:waits]).to match([include(waiting_for: /\Aa permit \(\d\)\z/, count: 3)])
    end
  end

  it "describes the 500 fibers that have waited longest" do
    with_fibers do
      600.times { Heddle.spin(name: "GET /", background: true) { sleep } }
      Heddle.snooze

      expect(report("only=named")).to include(waiting: 600, described: 500, waits: [include(count: 500)])
    end
  end

  it "takes the requests of the page for Heddle's own" do
    with_fibers("GET /heddle/names.json", "GET /heddle/nothing") do
      expect([row("GET /heddle/names.json"), row("GET /heddle/nothing")].map { |each| each[:kind] })
        .to eq %w[heddle request]
    end
  end

  it "says which fibers ran late, and what ran meanwhile" do
    with_fibers do
      slow = Heddle.spin(name: "GET /slow", background: true) do
        finish = Clock.now + 0.1
        Heddle.without_preemption { Integer.sqrt(2) until Clock.now > finish }
      end
      quick = Heddle.spin(name: "GET /quick", background: true) { sleep(0) }
      Heddle.await_all(slow, quick)
      slow = include(include(name: "GET /slow", ran: be > 0))

      expect(report[:late]).to include(include(name: "GET /quick", waited: be >= 0.01, ran_meanwhile: slow))
    end
  end

  it "makes JSON of names and waits in any encoding, and cuts long ones" do
    run_with_web(stats: :detailed) do
      ["\xFF\xFE", "caf\u00E9".encode("UTF-16LE"), "\xE9".b, "x" * 5000].each do |name|
        Heddle.spin(name:, background: true) { sleep }
      end
      Heddle.snooze
      names = report[:names].map { |each| each[:name].to_s }

      expect(names).to include("\uFFFD\uFFFD", "\uFFFD")
      expect(names.map(&:size).max).to be <= 121
    end
  end

  it "reports names without bound as 'other'" do
    with_fibers do
      ("gaa".."zzz").first(500).each { |name| Heddle.annotate("GET /#{name}") { sleep(0) } }

      names = report[:names]

      expect(names.size).to be_between(100, 110)
      expect(names.find { |each| each[:name] == "other" }).to include(finished: be >= 390)
    end
  end

  it "reports nothing where there is no scheduler, and in a forked child" do
    expect(in_child { report.values_at(:names, :waits, :late) }).to eq [[], [], []]
  end
end
