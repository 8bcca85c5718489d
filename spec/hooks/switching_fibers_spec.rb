# frozen_string_literal: true

require "tempfile"

# Known traps of the hook interface. The tag `trap:` is the number of the trap. These have no example here:
#
#   trap | why
#   -----+-----------------------------------------------------------------------------------------------------------
#      6 | inside the hooks: whether a hook of Heddle calls hooks again is not visible from outside
#      7 | Ruby's own: a blocking fiber never asks its scheduler
RSpec.describe "A scheduler that switches fibers" do
  it "returns the values of an Enumerator that waits in next to its caller", trap: 1 do
    values = IO.pipe do |reader, writer|
      Heddle.run do
        asked = Queue.new
        lines = Enumerator.new { |yielder| 2.times { asked.push(true) && (yielder << reader.gets(chomp: true)) } }
        Fiber.schedule do
          2.times do |number|
            asked.pop
            writer.puts(number)
          end
        end
        [lines.next, lines.next]
      end
    end
    expect(values).to eq %w[0 1]
  end

  it "returns to a fiber that has scheduled a child which waits", trap: 2 do
    order = []
    Heddle.run do
      Fiber.schedule do
        Fiber.schedule { sleep(a_moment) }
        order << :parent
      end
      order << :grandparent
    end
    expect(order).to contain_exactly(:parent, :grandparent)
  end

  it "returns to a fiber that has raised into another one", trap: 2 do
    order = []
    Heddle.run do
      mutex = Mutex.new
      mutex.lock
      waiting = Fiber.schedule do
        mutex.lock
      rescue StandardError
        order << :interrupted
      end
      waiting.raise("interrupt")
      order << :raiser
      mutex.unlock
    end
    expect(order).to eq %i[interrupted raiser]
  end

  it "returns to a fiber that has killed another one", trap: 2 do
    order = []
    Heddle.run do
      waiting = Fiber.schedule do
        sleep
      ensure
        order << :killed
      end
      waiting.kill
      order << :killer
    end
    expect(order).to eq %i[killed killer]
  end

  it "never transfers to a fiber that has resumed another one, even after an unblock", trap: 3 do
    value = Heddle.run do
      resuming = Fiber.current
      Fiber.schedule do
        3.times do
          Fiber.scheduler.unblock(:anything, resuming)
          sleep(0)
        end
      end
      Fiber.new { :inner.tap { sleep(a_moment) } }.resume
    end
    expect(value).to eq :inner
  end

  it "never transfers to a fiber that has yielded to its resumer, even after an unblock", trap: 3 do
    values = Heddle.run do
      yielding = Fiber.new do
        Fiber.yield(:first)
        :second
      end
      first = yielding.resume
      Fiber.scheduler.unblock(:anything, yielding)
      sleep(0)
      [first, yielding.resume]
    end
    expect(values).to eq %i[first second]
  end

  it "lets the siblings of a fiber that ends with an error run to their end", trap: 4 do
    ended = []
    expect do
      virtually do
        Fiber.schedule do
          sleep(5)
          ended << :sibling
        ensure
          ended << :ensured
        end
        Fiber.schedule { raise "ends this fiber" }
        Fiber.schedule do
          sleep(1)
          raise Exception, "ends this one" # rubocop:disable Lint/RaiseException -- not only a StandardError
        end
      end
    end.to output(/ends this fiber.*ends this one/m).to_stderr
    expect(ended).to eq %i[sibling ensured]
  end

  it "continues after a Thread#raise in the root fiber during its switches", trap: 5 do
    stop = Class.new(StandardError)
    ended = Queue.new
    interrupted = Queue.new
    thread = scheduled_thread do
      20.times do |number|
        Fiber.schedule do
          50.times { sleep(0) }
          ended.push(number)
        end
      end
      begin
        interrupted.push(:ready)
        Enumerator.new { |yielder| yielder << sleep }.next
      rescue stop
        interrupted.push(:interrupted)
      end
    end
    interrupted.pop
    thread.raise(stop)
    thread.join
    expect([interrupted.size, ended.size]).to eq [1, 20]
  end

  it "lets other fibers run during IO.copy_stream", trap: 8 do
    copied = Tempfile.create("heddle") do |file|
      IO.pipe do |reader, writer|
        Heddle.run do
          Fiber.schedule do
            4.times do
              writer.write("x" * (1 << 18))
              sleep(a_moment)
            end
            writer.close
          end
          Fiber.schedule { 20.times { sleep(0) } }
          IO.copy_stream(reader, file)
        end
      end
      [file.flush.size, File.size(file.path)]
    end
    expect(copied).to eq [1 << 20, 1 << 20]
  end

  it "copies between pipes in several fibers at once", trap: 8 do
    results = []
    Heddle.run do
      5.times do |number|
        from, feed = IO.pipe
        drain, to = IO.pipe
        Fiber.schedule do
          IO.copy_stream(from, to)
          to.close
        end
        Fiber.schedule do
          results << [number, drain.read.size]
          [from, drain].each(&:close)
        end
        Fiber.schedule do
          feed.write("x" * (200_000 + number))
          feed.close
        end
      end
    end
    expect(results).to match_array(Array.new(5) { |number| [number, 200_000 + number] })
  end
end
