# frozen_string_literal: true

RSpec.describe "The name of a fiber" do
  nameless = Class.new { def to_s = nil }.new

  def name_of(fiber)
    Heddle.fibers.find { |info| info.fiber.equal?(fiber) }&.name
  end

  it "is what the fiber passes to Heddle.annotate" do
    name = Heddle.run do
      fiber = Heddle.spin(background: true) { Heddle.annotate("clock") && sleep }
      Heddle.snooze
      name_of(fiber)
    end

    expect(name).to eq("clock")
  end

  it "is converted by to_s" do
    name = Heddle.run { Heddle.annotate(:clock) && name_of(Fiber.current) }

    expect(name).to eq("clock")
  end

  it "is a frozen copy of a String that may change" do
    given = +"clock"
    name = Heddle.run do
      Heddle.annotate(given)
      given << "!"
      name_of(Fiber.current)
    end

    expect([name, name.frozen?]).to eq(["clock", true])
  end

  it "is removed by nil" do
    name = Heddle.run do
      Heddle.annotate("clock")
      Heddle.annotate(nil)
      name_of(Fiber.current)
    end

    expect(name).to be_nil
  end

  it "lasts as long as the block of Heddle.annotate, and is then the previous one" do
    names = Heddle.run do
      Heddle.annotate("outer")
      [Heddle.annotate("inner") { name_of(Fiber.current) }, name_of(Fiber.current)]
    end

    expect(names).to eq(%w[inner outer])
  end

  it "is removed after a block of Heddle.annotate that raises" do
    name = Heddle.run do
      begin
        Heddle.annotate("inner") { raise KeyError }
      rescue KeyError
        nil
      end
      name_of(Fiber.current)
    end

    expect(name).to be_nil
  end

  it "makes Heddle.annotate return the block's value" do
    expect(Heddle.annotate("clock") { 42 }).to eq(42)
  end

  it "can be set on a thread without a scheduler" do
    expect(Thread.new { Heddle.annotate("clock") }.value).to eq("clock")
  end

  it "must be an object whose to_s returns a String" do
    expect { Heddle.annotate(nameless) }.to raise_error(TypeError, /String/)
  end

  {
    "Heddle.spin" => ->(name, block) { Heddle.spin(name:, background: true, &block) },
    "Heddle.after" => ->(name, block) { Heddle.after(0, name:, background: true, &block) },
    "Barrier#spin" => ->(name, block) { Heddle::Barrier.new.spin(name:, background: true, &block) }
  }.each do |method, start|
    it "can be given to #{method}" do
      name = Heddle.run { name_of(start.call("worker", -> { sleep })) }

      expect(name).to eq("worker")
    end
  end

  it "makes Heddle.spin raise before it makes a fiber if it cannot be converted" do
    made = Heddle.run do
      before = state_counts[:fibers]
      begin
        Heddle.spin(name: nameless, background: true) { nil }
      rescue TypeError
        state_counts[:fibers] - before
      end
    end

    expect(made).to eq(0)
  end

  it "is in the report of an error that no rescue handles" do
    text = captured_stderr do
      Heddle.run do
        Fiber.schedule do
          Heddle.annotate("GET /users/7")
          raise KeyError, "lost"
        end
      end
    end

    expect(text).to match(%r{\A#<Fiber:0x\h+ "GET /users/7" \S+names_spec\.rb:\d+ \(resumed\)> terminated with})
  end

  it "is in the report of a fiber that does not end" do
    text = captured_stderr do
      Heddle.run(grace: 0.05) do
        fiber = Heddle.spin(name: "stubborn", background: true) do
          sleep
        ensure
          sleep
        end
        Heddle.snooze
        Heddle.stop(fiber)
        sleep 0.001 while fiber.alive?
      end
    end

    expect(text).to match(/\A#<Fiber:0x\h+ "stubborn" .* has not ended 0\.05 s after/)
  end

  it "is shown shortened, and without control characters and invalid bytes" do
    line = Heddle.run do
      Heddle.annotate("a\nb\xFF#{"x" * 1000}")
      Heddle.fibers.find { |info| info.fiber.equal?(Fiber.current) }.to_s
    end

    expect(line).to match(/\Afiber \d+ "a\\nb\\xFFx{116}…" \(running, [\d.]+ s\)\z/)
  end
end
