# frozen_string_literal: true

require "heddle/web"

RSpec.describe Heddle::Web do
  include WebRequests

  # Runs the block beside a fiber "parent" with the children "first" and "second", and 20 others.
  def with_fibers
    run_with_web do
      Heddle.spin(name: "parent", background: true) do
        Heddle.spin(name: "first", background: true) { Thread::Queue.new.pop }
        Heddle.spin(name: "second", background: true) { sleep 999 }
        sleep
      end
      20.times { |number| Heddle.spin(name: "worker #{number}", background: true) { sleep } }
      until_others_wait
      yield
    end
  end

  def fibers(query = "") = own_scheduler("/fibers.json?#{query}")[:fibers]

  def names(query) = fibers(query).map { |fiber| fiber[:name] }

  it "reports fibers with their state, what they wait for, and their depth in the tree" do
    with_fibers do
      found = fibers.to_h { |fiber| [fiber[:name], fiber] }

      expect(found["first"]).to include(state: "waiting", waiting_for: /\AQueue#pop/, depth: 2, match: true,
                                        parent: found["parent"][:id], seconds: be >= 0)
      expect(found["second"]).to include(waiting_for: /\Asleep, \d+\.\d s left\z/, depth: 2)
      expect(found["parent"]).to include(depth: 1, block: /fibers_spec\.rb:\d+\z/)
    end
  end

  it "puts children after their parents" do
    with_fibers { expect(names("").compact.first(3)).to eq %w[parent first second] }
  end

  it "finds fibers by name, in any case, and shows their ancestors" do
    with_fibers do
      expect(fibers("q=SECOND").map { |fiber| fiber.values_at(:name, :match) })
        .to eq [[nil, false], ["parent", false], ["second", true]]
    end
  end

  it "finds fibers by what they wait for, by their id, and by the place of their block" do
    with_fibers do
      id = fibers("q=first").last[:id]

      expect(names("q=queue%23pop")).to eq [nil, "parent", "first"]
      expect(names("q=#{id}")).to eq [nil, "parent", "first"]
      expect(names("q=fibers_spec.rb")).to include("worker 7")
    end
  end

  it "finds fibers by their state" do
    with_fibers { expect(names("state=running").size).to eq 1 }
  end

  it "sends as many as the limit, and says how many match" do
    with_fibers do
      report = own_scheduler("/fibers.json?limit=5&q=worker")

      expect(report).to include(total: 25, count: 20, fibers: have_attributes(size: 5))
    end
  end

  it "sends those first that have been in their state longest, without a tree" do
    with_fibers do
      found = fibers("order=longest&limit=10")

      expect(found.map { |fiber| fiber[:seconds] }).to eq(found.map { |fiber| fiber[:seconds] }.sort.reverse)
      expect(found).to all include(depth: 0, match: true)
    end
  end

  it "sends the oldest first, without a tree" do
    run_with_web(stats: :detailed) do
      %w[first second third].each { |name| Heddle.spin(name:, background: true) { sleep } && sleep(a_moment) }

      expect(names("order=age&only=named")).to eq %w[first second third]
    end
  end

  it "sends only named fibers if it is asked to, without those of Heddle and of the page" do
    run_with_web do
      own = ["heddle: lag", "GET /heddle/fibers.json", "POST /heddle/trace"]
      [*own, "GET /orders/7", "GET /heddler", nil].each { |name| Heddle.spin(name:, background: true) { sleep } }
      Heddle.snooze

      expect(names("order=age&only=named")).to contain_exactly("GET /orders/7", "GET /heddler")
    end
  end

  it "says where each fiber's time went since it has its name" do
    run_with_web(stats: :detailed) do
      Heddle.spin(name: "sleeper", background: true) { sleep }
      until_others_wait

      expect(fibers("q=sleeper").last[:times])
        .to include(seconds: be > 0, ran: be >= 0, runnable: be >= 0, waited: { sleep: be > 0 }, preemptions: 0)
    end
  end

  it "shortens names, which come from clients" do
    run_with_web do
      Heddle.annotate("GET /#{"a" * 5000}") { expect(names("").compact).to eq ["GET /#{"a" * 115}…"] }
    end
  end

  it "reports a chain that is deeper than Ruby's stack" do
    run_with_web do
      bottom = Queue.new
      descend = lambda do |depth|
        bottom << true if depth.zero?
        depth.zero? ? sleep : Heddle.await(Heddle.spin { descend.call(depth - 1) })
      end
      Heddle.spin(background: true) { descend.call(2000) }
      bottom.pop

      expect(fibers("limit=1000").map { |fiber| fiber[:depth] }).to eq [0, *0..998]
    end
  end
end
