# frozen_string_literal: true

# A fiber is preempted within compiled code, and the compiler frees, patches or replaces that code before the fiber runs
# again. Each example has a process of its own, as a compiler cannot be switched off again.
RSpec.describe "A yielding fiber that is preempted in code of a just-in-time compiler" do
  # Three fibers count while `change` runs in a fourth one. The loop of a counting fiber calls `Subject.answer`, and
  # records each new answer. `seen` waits until all three have got an answer. As they never wait, they have then been
  # preempted. Prints the answers of each fiber, and whether its sum is right.
  let(:preamble) { <<~RUBY }
    require "heddle"
    require #{Computing::PATH.dump}

    JIT = RubyVM.const_get(ARGV.fetch(0))
    ROUND = 500

    def compiled
      JIT.respond_to?(:runtime_stats) ? JIT.runtime_stats(:compiled_iseq_count) : JIT.stats(:compiled_iseq_count)
    end

    def invalidated
      JIT.respond_to?(:runtime_stats) ? JIT.runtime_stats(:invalidation_count) : JIT.stats(:invalidation_time_ns)
    end

    # A fiber that counts, and adds up.
    class Counter
      attr_reader :answers, :count

      def initialize
        @answers = []
        @count = @sum = 0
      end

      def right? = @sum == @count * (@count + 1) / 2

      def round(number = ROUND)
        while number > 0
          number -= 1
          @count += 1
          @sum += @count
          answer = Subject.answer
          @answers << answer unless @answers.last.equal?(answer)
        end
      end
    end

    COUNTERS = Array.new(3) { Counter.new }

    def seen(answer) = (sleep(0.0005) until COUNTERS.all? { |counter| counter.answers.include?(answer) })

    # Waits until all have counted further than now.
    def continue
      before = COUNTERS.map(&:count)
      sleep(0.0005) until COUNTERS.zip(before).all? { |counter, count| counter.count > count + ROUND }
    end

    def beside_counters(&change)
      # The first call of a method is profiled, and the second one compiled. If a tick came in between, and another
      # fiber was second, the compiler would know nothing of `Subject`, and make code that nothing can make invalid.
      2.times { Counter.new.round(1) }
      over = false
      preemptions = Heddle.run(tick: 0.0005) do
        fibers = COUNTERS.map { |counter| YieldingFiber.schedule { counter.round until over } }
        continue
        change.call
        continue
        over = true
        sleep(0) while fibers.any?(&:alive?)
        Fiber.scheduler.stats[:run_queue][:preemptions_count]
      ensure
        over = true
      end
      p COUNTERS.map(&:answers), COUNTERS.all?(&:right?)
      abort "nothing was preempted" unless preemptions > COUNTERS.size
      abort "nothing was compiled" unless compiled > 0
    end
  RUBY

  def run(program, name, options = Jits::EAGER.fetch(name))
    output, errors, status = run_ruby(preamble + program, name, env: { "RUBYOPT" => options.join(" ") })
    expect([errors, status.success?]).to eq ["", true]
    output
  end

  def all_see(*answers) = "#{Array.new(3) { answers }.inspect}\ntrue\n"

  # What makes compiled code of `Subject.answer` invalid: the code that defines the subject, and that which changes the
  # answer to `version`. The first version is 1.
  changes = {
    "a method that is redefined" => [<<~RUBY, <<~RUBY],
      module Subject
        def self.answer = 1
      end
    RUBY
      Subject.singleton_class.remove_method(:answer)
      Subject.module_eval("def self.answer = \#{version}")
    RUBY
    "a constant that is set again" => [<<~RUBY, <<~RUBY],
      module Subject
        ANSWER = 1
        def self.answer = ANSWER
      end
    RUBY
      Subject.send(:remove_const, :ANSWER)
      Subject.const_set(:ANSWER, version)
    RUBY
    "Integer#+ that is redefined" => [<<~RUBY, <<~RUBY],
      module Subject
        def self.answer = -1_000_000 + 1_000_001
      end
      Integer.alias_method(:plus, :+)
    RUBY
      Integer.class_eval(<<~METHOD)
        remove_method(:+)
        def +(other) = equal?(-1_000_000) ? \#{version} : plus(other)
      METHOD
    RUBY
    "a method that a singleton class overrides" => [<<~RUBY, <<~RUBY],
      class Answering
        def answer = 1
      end
      Subject = Answering.new
    RUBY
      Subject.define_singleton_method(:answer) { version }
    RUBY
    "a method of a module that is prepended" => [<<~RUBY, <<~RUBY]
      module Subject
        def self.answer = 1
      end
    RUBY
      Subject.singleton_class.prepend(Module.new { define_method(:answer) { version } })
    RUBY
  }

  plain_subject = "module Subject\n  def self.answer = 1\nend\n"

  Jits.names.each do |name|
    context "with #{name}" do
      before { (reason = Jits.refusal(name)) && skip(reason) }

      changes.each do |what, (subject, change)|
        it "gets each new answer of #{what}" do
          expect(run(<<~RUBY, name)).to eq(all_see(1, 2, 3, 4))
            #{subject}
            beside_counters do
              seen(1)
              before = invalidated
              (2..4).each do |version|
                $VERBOSE = nil
                #{change}
                seen(version)
              end
              abort "nothing was invalidated" unless invalidated > before
            end
          RUBY
        end
      end

      it "continues correctly while a TracePoint is enabled, which sees it, and after it is disabled" do
        expect(run(<<~RUBY, name)).to eq("#{all_see(1)}[true, true, true]\ntrue\n")
          #{plain_subject}
          traced = Hash.new(0)
          trace = TracePoint.new(:line, :c_call) { |point| traced[point.self] += 1 if Counter === point.self }
          late = nil
          beside_counters do
            3.times do
              traced.clear
              trace.enable
              sleep(0.0005) until COUNTERS.all? { |counter| traced[counter] > ROUND }
              trace.disable
              before = traced.values
              continue
              late = traced.values.sum - before.sum
            end
          end
          # A fiber that was preempted in the handler finishes it.
          p COUNTERS.map { |counter| traced[counter] > ROUND }, late <= COUNTERS.size
        RUBY
      end

      it "continues correctly when the compiler is enabled at run time" do
        expect(run(<<~RUBY, name, [])).to eq("#{all_see(1)}[false, true]\n")
          #{plain_subject}
          states = [JIT.enabled?]
          beside_counters do
            JIT.enable
            before = compiled
            sleep(0.0005) until compiled > before
          end
          p states << JIT.enabled?
        RUBY
      end

      it "continues correctly after its code was freed" do
        skip "#{name} frees no code" unless RubyVM.const_get(name).respond_to?(:code_gc)

        expect(run(<<~RUBY, name)).to eq("#{all_see(1)}true\n")
          #{plain_subject}
          before = JIT.runtime_stats(:code_gc_count)
          beside_counters do
            5.times do
              JIT.code_gc
              continue
            end
          end
          p JIT.runtime_stats(:code_gc_count) >= before + 5
        RUBY
      end

      # The new methods are compiled, and 1 MiB is soon full of their code.
      filling = <<~RUBY
        number = 0
        body = Array.new(40) { |line| "x = x.to_s.size + \#{line}" }.join("\n")
        fill = lambda do
          100.times do
            number += 1
            Object.class_eval("def made_\#{number}(x)\n\#{body}\nend")
            3.times { __send__(:"made_\#{number}", 1) }
          end
          sleep(a_moment)
        end
      RUBY

      it "continues correctly when the compiler has no memory left for code" do
        expect(run(<<~RUBY, name, [*Jits::EAGER.fetch(name), Jits.memory(name, 1)])).to eq(all_see(1))
          #{plain_subject}
          #{filling}
          beside_counters do
            begin
              before = compiled
              fill.call
            end until compiled == before
          end
        RUBY
      end

      it "continues correctly when the compiler frees code to have memory for more" do
        skip "#{name} frees no code" unless RubyVM.const_get(name).respond_to?(:code_gc)

        expect(run(<<~RUBY, name, [*Jits::EAGER.fetch(name), Jits.memory(name, 1), "--yjit-code-gc"])).to eq(all_see(1))
          #{plain_subject}
          #{filling}
          beside_counters { fill.call until JIT.runtime_stats(:code_gc_count) >= 2 }
        RUBY
      end

      it "continues correctly after objects were moved that its code refers to", gc: :compact do
        expect(run(<<~RUBY, name)).to eq("#{all_see("answer")}true\n")
          module Subject
            ANSWER = "answer"
            def self.answer = ANSWER
          end
          before = GC.stat(:compact_count)
          beside_counters do
            5.times do
              GC.verify_compaction_references(toward: :empty, expand_heap: true)
              continue
            end
          end
          p GC.stat(:compact_count) >= before + 5
        RUBY
      end

      it "keeps each frame of a deep recursion" do
        expect(run(<<~RUBY, name)).to eq(all_see(500_500))
          module Subject
            def self.sum_to(number) = number.zero? ? 0 : number + sum_to(number - 1)
            def self.answer = sum_to(1_000)
          end
          beside_counters {}
        RUBY
      end

      it "rescues a SystemStackError" do
        expect(run(<<~RUBY, name)).to eq(all_see(:too_deep))
          module Subject
            def self.endless(number) = endless(number + 1) + 1

            def self.answer
              endless(0)
            rescue SystemStackError
              :too_deep
            end
          end
          beside_counters {}
        RUBY
      end

      it "gets an exception that is sent to it" do
        expect(run(<<~RUBY, name)).to eq("#{[["sent"] * 3, [1] * 3].inspect}\n")
          #{plain_subject}
          ended = []
          Heddle.run(tick: 0.0005) do
            fibers = COUNTERS.map do |counter|
              YieldingFiber.schedule do
                counter.round while true
              rescue RuntimeError => e
                ended << e.message
              end
            end
            seen(1)
            fibers.each { |fiber| fiber.raise("sent") }
          end
          p [ended, COUNTERS.map { |counter| counter.answers.size }]
        RUBY
      end
    end
  end
end
