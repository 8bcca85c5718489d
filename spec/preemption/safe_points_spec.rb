# frozen_string_literal: true

require "monitor"
require "tmpdir"

# rubocop:disable-next Style/GlobalVars -- files that are loaded share nothing else with their example
RSpec.describe "A preemption" do
  # Where the fiber computes: each entry calls its argument somewhere inside, and its value is compared.
  spots = {
    "in Hash#each" => [->(work) { { a: 1, b: 2 }.each { work.call }.size }, 2],
    "in Hash#each of a Hash that is changed" => [lambda { |work|
      hash = { a: 1 }
      hash.each_key do |key|
        work.call
        hash[key] = 2
      end
      hash[:b] = 3
      hash
    }, { a: 2, b: 3 }],
    "in Hash.new's block" => [->(work) { Hash.new { |hash, key| hash[key] = work.call || key }[:key] }, :key],
    "in a key's hash and eql?" => [lambda { |work|
      key = Class.new do
        define_method(:hash) { work.call || 1 }
        define_method(:eql?) { |_| work.call.nil? }
      end
      hash = { key.new => 1 }
      hash[key.new]
    }, 1],
    "in Array#sort_by" => [->(work) { [3, 1, 2].sort_by { |number| work.call || number } }, [1, 2, 3]],
    "in Array#sort's block" => [->(work) { [3, 1, 2].sort { |one, other| work.call || (one <=> other) } }, [1, 2, 3]],
    "in Array#map!, select! and uniq" => [lambda { |work|
      [1, 2, 2].map! { |number| work.call || (number * 2) }.select { work.call || true }.uniq { |x| work.call || x }
    }, [2, 4]],
    "in Array#each of an Array that grows" => [lambda { |work|
      array = [1]
      array.each { |number| (work.call || number) < 3 && (array << (number + 1)) }
    }, [1, 2, 3]],
    "in Enumerable#inject" => [->(work) { (1..3).inject { |sum, number| work.call || (sum + number) } }, 6],
    "in String#gsub's block" => [->(work) { "abc".gsub(/[ab]/) { |letter| work.call || letter.upcase } }, "ABc"],
    "in to_s of an interpolation" => [lambda { |work|
      "<#{Class.new { define_method(:to_s) { work.call || "s" } }.new}>"
    }, "<s>"],
    "in <=> of Comparable" => [lambda { |work|
      comparable = Class.new do
        include Comparable

        define_method(:<=>) { |_| work.call || 0 }
      end
      comparable.new == comparable.new # rubocop:disable Lint/BinaryOperatorWithIdenticalOperands -- two objects
    }, true],
    "in a method of define_method" => [lambda { |work|
      Class.new do
        define_method(:run) do |number = 1, *rest, key: 2|
          [work.call, number, rest, key]
        end
      end.new.run(3, 4, key: 5)
    }, [nil, 3, [4], 5]],
    "in method_missing and respond_to_missing?" => [lambda { |work|
      Class.new do
        define_method(:method_missing) { |name, *| work.call || name }
        define_method(:respond_to_missing?) { |*| work.call.nil? }
      end.new.then { |object| [object.unknown, object.respond_to?(:unknown)] }
    }, [:unknown, true]],
    "in a class body" => [->(work) { Class.new { const_set(:VALUE, work.call || 1) }::VALUE }, 1],
    "in inherited and method_added" => [lambda { |work|
      found = []
      parent = Class.new do
        define_singleton_method(:inherited) { |child| work.call || ((found << :inherited) && super(child)) }
        define_singleton_method(:method_added) { |name| work.call || (found << name) }
      end
      Class.new(parent) { def added = nil }
      found
    }, %i[inherited added]],
    "in instance_eval and eval" => [lambda { |work|
      "".instance_eval do
        eval("work.call || 1 + 1", binding, __FILE__, __LINE__)
      end
    }, 2],
    "in ensure" => [lambda { |work|
      found = []
      begin
        found << :body
      ensure
        work.call
        found << :ensured
      end
    }, %i[body ensured]],
    "in ensure after an error" => [lambda { |work|
      found = []
      begin
        begin
          raise KeyError
        ensure
          work.call
          found << :ensured
        end
      rescue KeyError
        found << :rescued
      end
    }, %i[ensured rescued]],
    "in rescue" => [lambda { |work|
      begin
        raise KeyError, "message"
      rescue KeyError => e
        work.call || e.message
      end
    }, "message"],
    "in ensure after throw and break" => [lambda { |work|
      catch(:thrown) do
        loop do
          throw :thrown, 1
        ensure
          work.call
        end
      end
    }, 1],
    "in Mutex#synchronize" => [->(work) { Mutex.new.synchronize { work.call || :value } }, :value],
    "in Monitor#synchronize" => [lambda { |work|
      Monitor.new.then do |monitor|
        monitor.synchronize do
          monitor.synchronize do
            work.call || 1
          end
        end
      end
    }, 1],
    "in ObjectSpace.each_object" => [lambda { |work|
      kind = Class.new
      kept = Array.new(2) { kind.new }
      ObjectSpace.each_object(kind) { work.call } && kept.size
    }, 2],
    "in a block of GC's" => [lambda { |work|
      GC.disable || GC.start || !GC.enable || work.call || GC.stat(:count).positive?
    }, true],
    "in Comparable#clamp, Integer.times and step" => [lambda { |work|
      3.times { work.call } + 1.step(3) {
        work.call
      }.clamp(1, 3)
    }, 4],
    "in Marshal's hooks" => [lambda { |work|
      Marshal.load(Marshal.dump([1, "a", { b: 2 }]), ->(object) { work.call || object })
    }, [1, "a", { b: 2 }]],
    "in Proc#curry, Method#to_proc and send" => [lambda { |work|
      lambda { |a, b|
        work.call || (a + b)
      }.curry[1].to_proc.call(2)
    }, 3],
    "in pattern matching with deconstruct" => [lambda { |work|
      kind = Class.new { define_method(:deconstruct) { work.call || [1, 2] } }
      kind.new => [first, _second]
      first
    }, 1],
    "in Enumerator::Lazy" => [->(work) { (1..).lazy.map { |number| work.call || (number * 2) }.first(2) }, [2, 4]],
    "in Dir.mktmpdir" => [->(work) { Dir.mktmpdir { work.call || 1 } }, 1]
  }.freeze
  # In each call of `work` another fiber runs once, so every call was preempted.
  def preempted(spot, ticker)
    value = error = nil
    Heddle.run(ticker:, quantum: 0.0005, tick: 0.0002) do
      runs = 0
      over = false
      Fiber.schedule { (runs += 1) && sleep(0) until over }
      YieldingFiber.schedule do
        value = spot.call(lambda {
          before = runs
          nil until runs > before
        })
      rescue StandardError => e
        error = e
      ensure
        over = true
      end
    end
    raise error if error

    value
  end

  Selection.tickers.each do |ticker|
    spots.each do |name, (spot, expected)|
      it "does no harm #{name}, with the ticker #{ticker}" do
        expect(preempted(spot, ticker)).to eq expected
      end
    end

    it "occurs while a regular expression is matched, with the ticker #{ticker}" do
      matched = Heddle.run(ticker:) do
        over = nil
        runs = 0
        Fiber.schedule { (runs += 1) && sleep(0) until over }
        cpu_bound = YieldingFiber.schedule do
          until over
            before = runs
            matched = "#{"a" * 70}bd".match?(/\A(a*)(a*)(a*)(a*)\1b\z/)
            over = [matched] if runs > before
          end
        end
        sleep(0) while cpu_bound.alive?
        over
      end
      expect(matched).to eq [false]
    end

    it "does no harm to fibers that wait for the Mutex of the preempted fiber, with the ticker #{ticker}" do
      order = []
      Heddle.run(ticker:) do
        mutex = Mutex.new
        waits = false
        YieldingFiber.schedule do
          mutex.synchronize do
            nil until waits
            order << :owner
          end
        end
        # Ruby 4.0's `synchronize` may be preempted before it locks.
        pass_until { mutex.locked? }
        2.times do
          Fiber.schedule do
            waits = true
            mutex.synchronize { order << :waiter }
          end
        end
      end
      expect(order).to eq %i[owner waiter waiter]
    end

    it "does no harm in deep recursion that ends with SystemStackError, with the ticker #{ticker}" do
      found = []
      Heddle.run(ticker:, quantum: 0.0002, tick: 0.0001) do
        over = false
        Fiber.schedule { sleep(0) until over }
        cpu_bound_fibers = Array.new(3) do
          YieldingFiber.schedule do
            dive = ->(level) { dive.call(level + 1) + 1 }
            10.times do
              dive.call(0)
            rescue SystemStackError
              found << :deep
            end
          end
        end
        sleep(0) while cpu_bound_fibers.any?(&:alive?)
        over = true
      end
      expect(found).to eq [:deep] * 30
    end

    it "occurs in a file that is required, while another fiber requires it: #{ticker}" do
      Dir.mktmpdir do |directory|
        file = File.join(directory, "computes.rb")
        File.write(file, "$heddle_loads += 1; nil until $heddle_other; $heddle_loaded = true")
        $heddle_loads = 0
        $heddle_other = $heddle_loaded = nil
        results = {}
        Heddle.run(ticker:) do
          YieldingFiber.schedule { results[:loads] = require(file) }
          # It may be preempted before it loads the file.
          pass_until { $heddle_loads.positive? }
          Fiber.schedule do
            $heddle_other = true
            results[:waits] = [require(file), $heddle_loaded]
          end
        end
        expect([results, $heddle_loads]).to eq [{ loads: true, waits: [false, true] }, 1]
      end
    end

    it "occurs in a file that is autoloaded, while another fiber needs the constant: #{ticker}" do
      Dir.mktmpdir do |directory|
        name = "HeddleAutoloaded#{ticker.capitalize}"
        file = File.join(directory, "autoloaded.rb")
        File.write(file, "nil until $heddle_other; module #{name}; VALUE = 1; end")
        $heddle_other = nil
        Object.autoload(name, file)
        values = []
        Heddle.run(ticker:) do
          YieldingFiber.schedule { values << Object.const_get(name)::VALUE }
          Fiber.schedule do
            $heddle_other = true
            values << Object.const_get(name)::VALUE
          end
        end
        expect(values).to eq [1, 1]
      ensure
        Object.__send__(:remove_const, name) if Object.const_defined?(name)
      end
    end

    # In a process of its own, as a process that collects garbage all the time can't be interrupted.
    it "does no harm under GC.stress, with the ticker #{ticker}" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        Heddle.run(ticker: :#{ticker}) do
          runs = 0
          cpu_bound = YieldingFiber.schedule do
            GC.stress = true
            text = "a text"
            nil until runs.positive?
            GC.stress = false
            puts text
          end
          runs += 1
          sleep(0) while cpu_bound.alive?
        end
      RUBY
      expect([output, errors, status.success?]).to eq ["a text\n", "", true]
    end

    # Ruby's select returns at once if an interrupt is pending. One always is if a collection takes longer than a tick.
    it "lets IO.select return under GC.stress, with the ticker #{ticker}" do
      output, errors, status = run_ruby(<<~RUBY)
        require "heddle"
        reader, writer = IO.pipe
        Heddle.run(ticker: :#{ticker}, preempt: :all) do
          GC.stress = true
          Fiber.schedule { writer.write("x") }
          ready = IO.select([reader], [], [], 45)
          GC.stress = false
          p ready == [[reader], [], []]
        end
      RUBY
      expect([output, errors, status.success?]).to eq ["true\n", "", true]
    end

    it "does no harm during compaction, with the ticker #{ticker}", gc: :compact, timeout: 240 do
      value = preempted(lambda { |work|
        Array.new(20) do |number|
          text = "a text of #{number}"
          work.call
          GC.compact if Collecting.compacts?
          text
        end
      }, ticker)
      expect(value).to eq(Array.new(20) { |number| "a text of #{number}" })
    end
  end
end
