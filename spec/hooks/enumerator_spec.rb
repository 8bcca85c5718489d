# frozen_string_literal: true

RSpec.describe "Enumerators and fibers inside fibers" do
  def lines_of(reader)
    Enumerator.new do |yielder|
      while (line = reader.gets(chomp: true))
        yielder << line
      end
    end
  end

  context "in a scheduled fiber" do
    it "do I/O in Enumerator#next" do
      values = IO.pipe do |reader, writer|
        Heddle.run do
          lines = lines_of(reader)
          Fiber.schedule do
            writer.puts("a")
            sleep(0)
            writer.puts("b")
          end
          [lines.next, lines.next]
        end
      end
      expect(values).to eq %w[a b]
    end

    it "let other fibers run while the generator waits" do
      runs = 0
      Heddle.run do
        queue = Queue.new
        values = Enumerator.new { |yielder| yielder << queue.pop }
        Fiber.schedule do
          5.times do
            runs += 1
            sleep(0)
          end
          queue.push(:value)
        end
        values.next
      end
      expect(runs).to eq 5
    end

    it "raise StopIteration at the end of the data" do
      values = IO.pipe do |reader, writer|
        Heddle.run do
          lines = lines_of(reader)
          Fiber.schedule do
            sleep(0)
            writer.puts("only")
            writer.close
          end
          [].tap { |read| loop { read << lines.next } }
        end
      end
      expect(values).to eq ["only"]
    end

    it "may wait in a generator inside a generator" do
      values = virtually do
        inner = Enumerator.new { |yielder| 3.times { |number| yielder << number.tap { sleep(1) } } }
        outer = Enumerator.new { |yielder| loop { yielder << (inner.next * 10).tap { sleep(1) } } }
        Array.new(3) { outer.next }
      end
      expect(values).to eq [0, 10, 20]
    end

    it "may wait in Enumerator#peek, which consumes nothing" do
      values = virtually do
        numbers = Enumerator.new { |yielder| 2.times { |number| yielder << number.tap { sleep(1) } } }
        [numbers.peek, numbers.next, numbers.next]
      end
      expect(values).to eq [0, 0, 1]
    end

    it "may wait in both Enumerators of a zip" do
      slow = ->(range) { Enumerator.new { |yielder| range.each { |number| yielder << number.tap { sleep(60) } } } }
      expect(virtually { slow.call(1..3).zip(slow.call(4..6)) }).to eq [[1, 4], [2, 5], [3, 6]]
    end

    it "keep the generators of many fibers apart" do
      sums = []
      Heddle.run do
        10.times do |base|
          Fiber.schedule do
            numbers = Enumerator.new { |yielder| 5.times { |number| yielder << (base + number).tap { sleep(0) } } }
            sums << Array.new(5) { numbers.next }.sum
          end
        end
      end
      expect(sums).to match_array(Array.new(10) { |base| (base * 5) + 10 })
    end

    it "may be continued by another fiber than the one that started them" do
      values = []
      virtually do
        numbers = Enumerator.new { |yielder| 2.times { |number| yielder << number.tap { sleep(1) } } }
        values << numbers.next
        Fiber.schedule { values << numbers.next }
      end
      expect(values).to eq [0, 1]
    end

    it "wait between their yields" do
      values = virtually do
        inner = Fiber.new do
          sleep(1)
          Fiber.yield(1)
          sleep(1)
          2
        end
        [inner.resume, inner.resume, inner.alive?]
      end
      expect(values).to eq [1, 2, false]
    end

    it "receive the argument of resume, also after a wait" do
      given = virtually do
        inner = Fiber.new do |first|
          sleep(1)
          second = Fiber.yield(first)
          sleep(1)
          [first, second]
        end
        inner.resume(:first)
        inner.resume(:second)
      end
      expect(given).to eq %i[first second]
    end

    it "raise an error of the generator in the fiber that called next, also after a wait" do
      expect do
        virtually do
          Enumerator.new do |_yielder|
            sleep(1)
            raise "generator"
          end.next
        end
      end.to raise_error("generator")
    end
  end

  context "in the blocking root fiber" do
    it "do I/O in Enumerator#next" do
      values = IO.pipe do |reader, writer|
        with_scheduler do
          lines = lines_of(reader)
          writer.puts("a")
          first = lines.next
          Heddle.spin(background: true) { writer.puts("b") }
          [first, lines.next]
        end
      end
      expect(values).to eq %w[a b]
    end

    it "poll when no other fiber can run" do
      values = IO.pipe do |reader, writer|
        with_scheduler do
          lines = lines_of(reader)
          root = Thread.current
          feeder = Thread.new do
            until_asleep(root)
            writer.puts("fed")
          end
          lines.next.tap { feeder.join }
        end
      end
      expect(values).to eq "fed"
    end

    it "sleep in Enumerator#next" do
      numbers = nil
      took = seconds do
        numbers = with_scheduler do
          sleepy = Enumerator.new { |yielder| 2.times { |number| yielder << number.tap { sleep(0.01) } } } # at least
          [sleepy.next, sleepy.next]
        end
      end
      expect([numbers, took]).to match [[0, 1], be >= 0.02]
    end

    it "keep waiting while scheduled fibers end" do
      ended = []
      value = with_scheduler do
        queue = Queue.new
        5.times do |number|
          Fiber.schedule do
            sleep(a_moment)
            ended << number
            queue.push(:last) if ended.size == 5
          end
        end
        Enumerator.new { |yielder| yielder << queue.pop }.next
      end
      expect([value, ended.sort]).to eq [:last, [0, 1, 2, 3, 4]]
    end

    it "are woken by another thread" do
      value = with_scheduler do
        queue = Queue.new
        root = Thread.current
        pusher = Thread.new do
          until_asleep(root)
          queue.push(:pushed)
        end
        Enumerator.new { |yielder| yielder << queue.pop }.next.tap { pusher.join }
      end
      expect(value).to eq :pushed
    end

    it "wait in a fiber that a resumed fiber has resumed" do
      value = with_scheduler do
        Fiber.schedule { sleep(a_moment) }
        Fiber.new { Fiber.new { :inner.tap { sleep(a_moment) } }.resume }.resume
      end
      expect(value).to eq :inner
    end

    it "return to the root when a scheduled fiber begins while a generator is suspended" do
      order = []
      # After a tick, fibers that were woken would run first.
      with_scheduler(tick: 60, quantum: 60) do
        numbers = Enumerator.new { |yielder| 2.times { |number| yielder << number.tap { sleep(0) } } }
        order << numbers.next
        Fiber.schedule do
          sleep(0)
          order << :scheduled
        end
        order << :root
        order << numbers.next
      end
      expect(order).to eq [0, :root, :scheduled, 1]
    end
  end
end
