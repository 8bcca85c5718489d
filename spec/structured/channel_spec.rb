# frozen_string_literal: true

RSpec.describe Heddle::Channel do
  it "passes values on in order, and makes the producer wait for room" do
    events = []
    channel = described_class.new(2)
    Heddle.run do
      producer = Heddle.spin { 4.times { |i| (channel << i) && (events << i) } }
      Heddle.snooze
      before = events.dup
      values = Array.new(4) { channel.pop }
      Heddle.await(producer)

      expect([before, values]).to eq([[0, 1], [0, 1, 2, 3]])
    end
  end

  it "can be shared by producers and consumers of several threads, and loses nothing" do
    channel = described_class.new(3)
    taken = Queue.new
    consumers = Array.new(2) do
      take = -> { channel.each { |n| taken.push(n) } }
      Thread.new { Heddle.run { Heddle.await_all(*Array.new(2) { Heddle.spin(&take) }) } }
    end
    consumers << Thread.new { channel.each { |n| taken.push(n) } }
    producers = Array.new(2) do |i|
      Thread.new do
        Heddle.run do
          Heddle.await_all(*Array.new(3) do |j|
            Heddle.spin do
              50.times do |n|
                channel << [i, j, n]
              end
            end
          end)
        end
      end
    end
    producers << Thread.new { 50.times { |n| channel << [2, 0, n] } }
    producers.each(&:join)
    channel.close
    consumers.each(&:join)

    expect([taken.size, Array.new(taken.size) { taken.pop }.uniq.size]).to eq([350, 350])
  end

  it "passes nil and false on as any other value" do
    values = Heddle.run do
      channel = described_class.new(3)
      [nil, false, 1].each { |value| channel << value }
      channel.close
      channel.each.to_a
    end

    expect(values).to eq([nil, false, 1])
  end

  describe "#close" do
    it "makes later pushes raise, and ends a push that waits" do
      errors = Heddle.run do
        channel = described_class.new
        channel << 1
        waiting = Heddle.spin do
          channel << 2
        rescue ClosedQueueError => e
          e
        end
        Heddle.snooze
        channel.close
        begin
          channel << 3
        rescue ClosedQueueError => e
          [e, *Heddle.await_all(waiting)]
        end
      end

      expect(errors).to all(be_a(ClosedQueueError)).and have_attributes(size: 2)
    end

    it "leaves what is in the channel, after which pop returns nil" do
      values = Heddle.run do
        channel = described_class.new
        channel << 1
        channel.close
        [channel.pop, channel.pop, channel.closed?]
      end

      expect(values).to eq([1, nil, true])
    end

    it "ends a pop that waits" do
      value = Heddle.run do
        channel = described_class.new
        Heddle.spin { channel.close }
        channel.pop
      end

      expect(value).to be_nil
    end
  end

  it "returns nil from pop when the time limit expires" do
    values = virtually do
      channel = described_class.new
      [channel.pop(timeout: 1), channel.push(1, timeout: 1).equal?(channel), channel.push(2, timeout: 1),
       channel.pop(timeout: 0), channel.size]
    end

    expect(values).to eq([nil, true, nil, 1, 0])
  end

  it "passes the wake-up of a cancelled waiter on to the next waiter" do
    value = Heddle.run do
      channel = described_class.new
      doomed = Heddle.spin { channel.pop }
      patient = Heddle.spin { channel.pop }
      Heddle.snooze
      channel << :value
      Heddle.terminate(doomed)
      channel << :second if Heddle.await(doomed)
      Heddle.await(patient)
    end

    expect(value).to eq(:value).or eq(:second)
  end

  describe ".select" do
    it "takes from the first channel that has a value" do
      found = Heddle.run do
        empty = described_class.new
        full = described_class.new
        Heddle.spin { full << :value }
        channel, value = described_class.select(empty, full)
        [channel.equal?(full), value, empty.push(1, timeout: 0).equal?(empty)]
      end

      expect(found).to eq([true, :value, true])
    end

    it "prefers the first channel of its arguments" do
      value = Heddle.run do
        channels = Array.new(2) { |i| described_class.new.push(i) }
        described_class.select(*channels).last
      end

      expect(value).to eq(0)
    end

    it "leaves out closed channels, and returns nil when all are closed" do
      found = Heddle.run do
        closed = described_class.new.close
        open = described_class.new
        Heddle.spin { open.push(:value).close }
        [described_class.select(closed, open).last, described_class.select(closed, open)]
      end

      expect(found).to eq([:value, nil])
    end

    [nil, false].each do |item|
      it "takes #{item.inspect}, as any other item" do
        channel = described_class.new(1).push(item)

        expect(described_class.select(channel, described_class.new)).to eq([channel, item])
      end
    end

    it "raises a StopIteration of a child, which a loop around it would rescue" do
      expect do
        Heddle.run do
          Heddle.spin { [].each.next }
          described_class.select(described_class.new)
        end
      end.to raise_error(StopIteration)
    end

    it "returns nil when the time limit expires, and takes nothing later" do
      found = virtually do
        channel = described_class.new
        first = described_class.select(channel, timeout: 1)
        channel << :later
        [first, channel.pop(timeout: 0)]
      end

      expect(found).to eq([nil, :later])
    end

    it "works from several threads at once, and loses nothing" do
      channels = Array.new(2) { described_class.new(2) }
      taken = Queue.new
      take = lambda do
        while (found = described_class.select(*channels))
          taken.push(found.last)
        end
      end
      takers = [Thread.new(&take), Thread.new { Heddle.run { Heddle.await_all(*Array.new(3) { Heddle.spin(&take) }) } }]
      Heddle.run do
        Heddle.await_all(*channels.map { |channel| Heddle.spin { 100.times { |n| channel << n } && channel.close } })
      end
      takers.each(&:join)

      expect(taken.size).to eq(200)
    end

    it "refuses an object that is no channel, and an empty list" do
      expect { described_class.select(Queue.new) }.to raise_error(TypeError, /is not a Heddle::Channel/)
      expect { described_class.select }.to raise_error(ArgumentError, /at least/)
    end

    it "takes a channel of the class from a subclass" do
      channel = described_class.new(1).push(:item)

      expect(Class.new(described_class).select(channel)).to eq([channel, :item])
    end
  end

  describe "as an Enumerable" do
    def filled(*items)
      described_class.new(items.size).tap { |channel| items.each { |item| channel << item } }
    end

    it "takes all items until it is closed" do
      expect(Heddle.run { filled(3, 1, 2).close.sort }).to eq([1, 2, 3])
    end

    it "waits for items that come later" do
      sum = Heddle.run do
        channel = described_class.new
        Heddle.spin { 10.times { |n| channel << n } && channel.close }
        channel.map { |n| n * 2 }.sum
      end

      expect(sum).to eq(90)
    end

    it "leaves items that a method does not need" do
      taken = Heddle.run do
        channel = filled(1, 2, 3, 4)
        [channel.first(2), channel.find(&:odd?), channel.pop]
      end

      expect(taken).to eq([[1, 2], 3, 4])
    end
  end
end
