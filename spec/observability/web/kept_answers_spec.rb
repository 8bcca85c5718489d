# frozen_string_literal: true

require "heddle/web"

RSpec.describe Heddle::Web do
  include WebRequests

  let(:app) { web_app }
  let(:context) { Heddle.const_get(:Context) }
  let(:now) { [100.0] }

  before { allow(context).to receive(:now) { now.last } }

  def snapshots = Heddle.const_get(:Snapshots)

  def names(query = "") = web("/fibers.json?#{query}", app:).body.scan(/"name":"(.*?)"/).flatten

  it "keeps a report for a second, for all pages that ask for the same" do
    Heddle.run do
      before = names
      Heddle.spin(name: "later", background: true) { sleep }
      now << 100.9
      kept = names
      now << 101.0

      expect([before, kept, names]).to eq [[], [], ["later"]]
    end
  end

  it "takes one snapshot for ten pages" do
    allow(snapshots).to receive(:take).and_call_original
    Heddle.run { 10.times { web("/fibers.json", app:) } }

    expect(snapshots).to have_received(:take).once
  end

  it "keeps it also where no rule for access is set" do
    allow(snapshots).to receive(:take).and_call_original
    stub_const("ENV", ENV.to_h.merge("RACK_ENV" => "test"))
    Heddle.run { 10.times { web("/fibers.json", app: described_class) } }

    expect(snapshots).to have_received(:take).once
  end

  it "makes a report once if further requests come meanwhile" do
    gate = Thread::Queue.new
    allow(snapshots).to receive(:take).and_wrap_original do |original|
      gate.pop
      original.call
    end
    Heddle.run do
      requests = Array.new(3) { Heddle.spin(background: true) { names } }
      Heddle.snooze
      gate << true
      Heddle.await_all(*requests)
    end

    expect(snapshots).to have_received(:take).once
  end

  it "keeps reports of different filters apart" do
    Heddle.run do
      Heddle.spin(name: "mine", background: true) { sleep }
      Heddle.snooze

      expect([names("q=mine"), names("q=other"), names("q=MINE")]).to eq [["mine"], [], ["mine"]]
    end
  end

  it "makes a report anew after an error" do
    allow(snapshots).to receive(:take) do
      allow(snapshots).to receive(:take).and_call_original
      raise "out of order"
    end
    Heddle.run do
      expect { names }.to raise_error("out of order")
      expect(names).to eq []
    end
  end

  it "answers in a forked child while a fiber of the parent was making the report" do
    gate = Thread::Queue.new
    allow(snapshots).to receive(:take).and_wrap_original do |original|
      gate.pop if Fiber[:slow]
      original.call
    end
    status = Heddle.run do
      Heddle.spin(background: true) { (Fiber[:slow] = true) && names }
      Heddle.snooze
      in_child { Heddle.run { web("/fibers.json", app:).status } }
    ensure
      gate << true
    end

    expect(status).to eq 200
  end
end
