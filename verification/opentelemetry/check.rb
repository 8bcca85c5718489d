# frozen_string_literal: true

# Checks the spans of OpenTelemetry's SDK in fibers, in requests under Puma and in jobs, preempted often. Prints a line
# for each place, and fails if a span has another parent than it should have. `rake opentelemetry` runs this.

require "active_job"
require "net/http"
require "tempfile"
require "heddle/executor"
require "heddle/offload"
require "active_job/queue_adapters/heddle_adapter"
require_relative "tracing"

OFTEN = { tick: 0.0005, quantum: 0.001 }.freeze
POOL = Heddle::ThreadPool.new(threads: 1)
EXECUTOR = Heddle::Executor.new

# Each starts a block elsewhere, and waits for its end.
PLACES = {
  "Heddle.spin" => ->(work) { Heddle.await(Heddle.spin(&work)) },
  "Heddle.map" => ->(work) { Heddle.map([1]) { work.call } },
  "Heddle.race" => ->(work) { Heddle.race(work, -> { sleep 60 }) },
  "Heddle.after" => ->(work) { Heddle.await(Heddle.after(0.001, &work)) },
  "Heddle::Barrier" => ->(work) { Heddle::Barrier.new.tap { |barrier| barrier.spin(&work) }.await_all },
  "Fiber.schedule" => ->(work) { Queue.new.tap { |done| Fiber.schedule { done << work.call } }.pop },
  "YieldingFiber.schedule" => ->(work) { Queue.new.tap { |done| YieldingFiber.schedule { done << work.call } }.pop },
  "Heddle::ThreadPool" => ->(work) { POOL.process(&work) },
  "Heddle::Offload.call" => ->(work) { Heddle::Offload.call(&work) },
  "Heddle::Executor" => ->(work) { Concurrent::Promises.future_on(EXECUTOR, &work).value! },
  "Thread.new" => ->(work) { Thread.new(&work).value },
  "Enumerator#next" => ->(work) { Enumerator.new { |values| values << work.call }.next }
}.freeze
# They belong to Ruby, which takes nothing along on a plain thread either.
OF_RUBY = ["Thread.new", "Enumerator#next"].freeze

# Jobs with spans, which are enqueued within one.
class Work < ActiveJob::Base
  DONE = Queue.new
  self.logger = nil
  self.queue_adapter = ActiveJob::QueueAdapters::HeddleAdapter.new(fibers: 20, **OFTEN)
  around_perform { |job, run| Tracing.span("job #{job.arguments.first}") { run.call } }
  after_perform { |job| DONE << job.arguments.first }

  def perform(number)
    2.times { Tracing.span("part of job #{number}") { sleep(0.001) && Tracing.compute } }
    Heddle.await(Heddle.spin { Tracing.span("task of job #{number}") { sleep 0.001 } })
  end
end

@wrong = []

def report(what, right)
  puts "#{what}: #{right ? "right" : "WRONG"}"
  @wrong << what unless right
end

# @return [Boolean] whether each span has the parent that its name says, and of those the count is right
def right?(spans, count, prefix)
  inner, outer = spans.partition { |name,| name.include?(" of ") }
  inner.size == count && outer.none? { |_, parent,| parent } &&
    inner.all? { |name, parent,| name.end_with?(" of #{parent}") && parent.start_with?(prefix) }
end

def check_fibers
  Heddle.run(preempt: :all, **OFTEN) do
    Heddle.map(1..20) do |number|
      10.times do
        Tracing.span("fiber #{number}") do
          Tracing.span("part of fiber #{number}") { sleep(0.001) && Tracing.compute }
        end
      end
    end
    preempted = Fiber.scheduler.stats[:run_queue][:preemptions_count]
    report("20 fibers, preempted #{preempted} times", preempted.positive? && right?(Tracing.take, 200, "fiber"))
  end
end

def check_places(expected, note)
  Heddle.run do
    PLACES.each do |place, start|
      seen = nil
      Tracing.span("request") { start.call(-> { seen = Tracing.current }) }
      report("#{place}, #{note}", seen == (expected unless OF_RUBY.include?(place)))
    end
    Tracing.take
  end
end

def check_jobs
  Tracing.span("request") { 40.times { |number| Work.perform_later(number) } }
  40.times { Work::DONE.pop }
  Work.queue_adapter.shutdown
  report("40 jobs", right?(Tracing.take, 120, "job"))
end

def check_requests
  with_puma do |port|
    currents = Array.new(10) { |number| Thread.new { requests(port, number) } }.flat_map(&:value)
    spans = Marshal.load(Net::HTTP.get("127.0.0.1", "/spans?600", port)) # rubocop:disable Security/MarshalLoad -- our own
    traces = spans.all? { |name, parent, trace| trace == trace_of(parent || name) }
    report("100 requests under Puma", right?(spans, 500, "/") && traces && currents.all?)
  end
end

# @return [Array<Boolean>] whether the application saw its request's span as the current one
def requests(port, client)
  Net::HTTP.start("127.0.0.1", port) do |http|
    Array.new(10) do |number|
      path = "/#{client}/#{number}"
      http.get(path, "traceparent" => "00-#{trace_of(path)}-00f067aa0ba902b7-01")["x-current"] == path
    end
  end
end

def trace_of(path) = path.delete("/").rjust(32, "a")

def with_puma
  port = TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
  Tempfile.create(%w[puma .rb]) do |config|
    config.write("plugin :heddle\nheddle tick: 0.0005, quantum: 0.001\nbind 'tcp://127.0.0.1:#{port}'\nquiet\n")
    config.close
    pid = spawn(RbConfig.ruby, "-e", 'load Gem.bin_path("puma", "puma")', "--", "-C", config.path,
                File.join(__dir__, "application.ru"), out: File::NULL)
    sleep 0.05 until listening?(port)
    yield port
  ensure
    Process.kill(:TERM, pid)
    Process.wait(pid)
  end
end

def listening?(port)
  TCPSocket.new("127.0.0.1", port).close
  true
rescue Errno::ECONNREFUSED
  false
end

# Fibers that are ended in a span.
def check_ends
  Heddle.run(preempt: :all, **OFTEN) do
    begun = Queue.new
    %w[killed stopped background].each do |name|
      fiber = Heddle.spin(background: true) { Tracing.span(name) { begun.push(name) && sleep } }
      begun.pop
      { "killed" => :kill, "stopped" => :stop }[name]&.then { |method| fiber.public_send(method) }
    end
  end
  report("spans of fibers that are ended", Tracing.take.map(&:first).sort == %w[background killed stopped])
end

# @return [BatchSpanProcessor] whose thread exports to the list
def batches(exported)
  exporter = Tracing::EXPORTER.clone
  exporter.define_singleton_method(:export) { |batch, **| exported.concat(batch.to_a) && 0 }
  OpenTelemetry::SDK::Trace::Export::BatchSpanProcessor.new(exporter, schedule_delay: 10)
end

def check_batches
  exported = []
  provider = OpenTelemetry::SDK::Trace::TracerProvider.new.tap { |each| each.add_span_processor(batches(exported)) }
  tracer = provider.tracer("heddle")
  Heddle.run(preempt: :all, **OFTEN) do
    Heddle.map(1..20) { 20.times { tracer.in_span("span") { sleep 0.0001 } } }
    provider.force_flush
    report("BatchSpanProcessor: 400 spans, and force_flush in a fiber", exported.size == 400)
    tracer.in_span("last") { nil }
    provider.shutdown
    report("BatchSpanProcessor: shutdown in a fiber", exported.size == 401)
  end
end

check_fibers
check_ends
check_batches
check_places(nil, "as it is")
Tracing.carry
check_places("request", "with Heddle.carry_context")
check_jobs
check_requests
abort "Wrong: #{@wrong.join("; ")}" if @wrong.any?
