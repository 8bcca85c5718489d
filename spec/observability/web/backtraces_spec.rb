# frozen_string_literal: true

require "heddle/web"

RSpec.describe Heddle::Web do
  include WebRequests

  # What the report has of a fiber that waits, in a block that the program calls by a library.
  def reported(name: nil, &)
    run_with_web do
      fiber = Heddle.spin(name:, background: true, &)
      Heddle.snooze
      web("/backtraces.json?ids=#{fiber.object_id},nonsense,-1").data[:fibers]
    end
  end

  def frames_of(lines)
    allow(Heddle.const_get(:Backtraces)).to receive(:of).and_return(lines)
    reported { sleep }.first[:backtrace].map { |frame| frame.values_at(:text, :from) }
  end

  it "sends the name and the backtrace of the fibers that it is asked for, and of no other" do
    found = reported(name: "GET /") { Thread::Queue.new.pop }

    expect(found.map { |fiber| fiber[:name] }).to eq ["GET /"]
    expect(found.first[:backtrace]).to include(include(text: /backtraces_spec\.rb:\d+:in .*block/))
  end

  it "sends an empty backtrace for a fiber that has not started" do
    found = run_with_web do
      fiber = Heddle.spin(background: true) { sleep }
      web("/backtraces.json?ids=#{fiber.object_id}").data[:fibers]
    end

    expect(found.first[:backtrace]).to eq []
  end

  it "leaves out fibers that have ended, and unknown ids" do
    run_with_web do
      fiber = Heddle.spin(background: true) { nil }
      Heddle.await(fiber)

      expect(web("/backtraces.json?ids=#{fiber.object_id},12345678,,x").data[:fibers]).to eq []
    end
  end

  it "says of which gem a frame is, and that others are of Ruby or of the program" do
    found = frames_of(["<internal:kernel>:187:in `loop'", "/usr/lib/gems/puma-8.0.2/lib/puma/server.rb:1:in `run'",
                       "/srv/bundler/gems/shop-1a2b3c4d/lib/shop.rb:1:in `sell'",
                       "#{RbConfig::CONFIG["rubylibdir"]}/set.rb:1:in `add'",
                       "/srv/app/models/order.rb:1:in `pay'",
                       "#{Dir.pwd}/vendor/bundle/gems/rack-3.0/lib/rack.rb:1:in `call'"])

    expect(found.map(&:last)).to eq ["Ruby", "puma", "shop", "Ruby", nil, "rack"]
  end

  it "takes a program for the program, also if its folder is called as a gem's" do
    allow(Dir).to receive(:pwd).and_return("/home/me/gems/shop-2")

    expect(frames_of(["/home/me/gems/shop-2/app.rb:1:in `pay'"]).map(&:last)).to eq [nil]
  end

  it "makes JSON of paths in any encoding" do
    expect(frames_of(["/srv/\xFF/gems/\xFE-1/a.rb:1:in `b'".b]))
      .to eq [["/srv/\uFFFD/gems/\uFFFD-1/a.rb:1:in `b'", "\uFFFD"]]
  end
end
