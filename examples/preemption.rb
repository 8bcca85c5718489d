# frozen_string_literal: true

# A CPU-bound fiber beside other fibers, without preemption and with it.
#
#   ruby -Ilib examples/preemption.rb [seconds]        the time that fib takes; 2.5 by default
#   ruby -Ilib examples/preemption.rb --serve [port]   only the web server; port 8080 by default
#
#   curl http://127.0.0.1:8080/fib &                   computes for a while
#   curl http://127.0.0.1:8080/hello                   is answered meanwhile
#
# The first program is that of 'Pre-emptive fiber-based concurrency in MRI Ruby' (2021): two fibers sleep for a second
# while a third computes. The second is a web server in a process of its own, which gets requests for /hello while it
# computes /fib. The only difference between the columns is `preempt: :none` in the first.

require "heddle"
require "net/http"
require "socket"
require_relative "support/http_connection"

module Preemption
  # The ratio of two successive Fibonacci numbers, and so of the times that fib takes for them.
  GOLDEN_RATIO = 1.618
  SERVED = 1.0
  PAUSE = 0.01

  module_function

  def fib(number) = number <= 1 ? 1 : fib(number - 1) + fib(number - 2)

  # The argument with which fib computes for about `wanted` seconds on this machine.
  def argument_for(wanted)
    number = 24
    # The least of several runs, as another process may disturb one of them.
    took = Array.new(5) { seconds { fib(number) } }.min
    while took * Math.sqrt(GOLDEN_RATIO) < wanted
      number += 1
      took *= GOLDEN_RATIO
    end
    number
  end

  # How long two sleeps of one second take, and how long fib takes beside them.
  def sleepers(number, preempt)
    slept = []
    took = nil
    Heddle.run(preempt:) do
      2.times { Fiber.schedule { slept << seconds { sleep 1 } } }
      YieldingFiber.schedule { took = seconds { fib(number) } }
    end
    [*slept, took]
  end

  # How long each answer to /hello took while /fib computed, and how long /fib took.
  def server(number, preempt)
    with_server(number, preempt) do |port|
      # Waits until the server answers.
      get(port, "/hello")
      took = nil
      computing = Thread.new { took = seconds { get(port, "/fib") } }
      hellos = []
      until took
        sleep PAUSE
        hellos << seconds { get(port, "/hello") }
      end
      computing.join
      [hellos, took]
    end
  end

  def with_server(number, preempt)
    listener = TCPServer.new("127.0.0.1", 0)
    port = listener.addr[1]
    # When this process ends, even by SIGKILL, the pipe closes, and the server ends.
    lifeline, writer = IO.pipe
    child = fork do
      trap(:INT, "IGNORE")
      writer.close
      Thread.new { exit!(true) unless lifeline.read(1) }
      serve(listener, number, preempt)
    end
    [listener, lifeline].each(&:close)
    yield port
  ensure
    writer.close
    Process.wait(child)
  end

  def serve(listener, number, preempt = :yielding)
    Heddle.run(preempt:) do
      loop do
        client = listener.accept
        YieldingFiber.schedule { answer(client, number) }
      end
    end
  end

  def answer(client, number)
    HttpConnection.new(client, keep_alive: false).serve do |request|
      [200, request.path == "/fib" ? "fib(#{number}) = #{fib(number)}\n" : "hello\n"]
    end
  end

  def get(port, path)
    Net::HTTP.get(URI("http://127.0.0.1:#{port}#{path}"))
  end

  def seconds
    started = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    yield
    Process.clock_gettime(Process::CLOCK_MONOTONIC) - started
  end
end

if $PROGRAM_NAME == __FILE__
  def row(name, *values)
    puts "  #{name.ljust(28)} #{values.map { |value| value.to_s.rjust(12) }.join(" ")}"
    $stdout.flush
  end

  def show_sleepers(number)
    row("beside fib(#{number})", "without", "with")
    runs = %i[none yielding].map { |preempt| Preemption.sleepers(number, preempt) }
    ["a sleep of 1 s took", "another", "fib(#{number}) took"].zip(*runs) do |name, *seconds|
      row(name, *seconds.map { |took| format("%.3f s", took) })
    end
  end

  def show_server(number)
    puts
    row("GET /hello beside GET /fib", "without", "with")
    hellos, took = %i[none yielding].map { |preempt| Preemption.server(number, preempt) }.transpose
    row("answers meanwhile", *hellos.map(&:size))
    row("the slowest took", *hellos.map { |each| format("%.1f ms", each.max * 1000) })
    row("/fib took", *took.map { |each| format("%.3f s", each) })
  end

  begin
    if ARGV.first == "--serve"
      TCPServer.open("127.0.0.1", Integer(ARGV.fetch(1, 8080))) do |listener|
        puts "Listening on http://127.0.0.1:#{listener.addr[1]}/, with /hello and /fib. Ctrl-C ends the server."
        $stdout.flush
        Preemption.serve(listener, Preemption.argument_for(Preemption::SERVED))
      end
    else
      wanted = Float(ARGV.fetch(0, 2.5))
      show_sleepers(Preemption.argument_for(wanted))
      show_server(Preemption.argument_for([wanted, Preemption::SERVED].min))
    end
  rescue Interrupt
    puts "Bye."
  end
end
