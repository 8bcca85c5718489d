# frozen_string_literal: true

# The server's own code is preempted like any other: each pair of what fibers do with its pool at the same time, in
# explored schedules.
RSpec.describe "The pool of plugin :heddle" do
  include Libraries

  let(:library) { "puma" }

  # What two fibers do, beside a connection that waits for its turn.
  operations = {
    "a connection" => "connect",
    "a second request" => "clients.first.puts",
    "a wake-up" => "pool.wake_waiting",
    "an end of the client" => "clients.first.close",
    "a shutdown" => "stops = true; pool.wake_waiting; pool.shutdown(1)",
    "a shutdown without a limit" => "stops = true; pool.wake_waiting; pool.shutdown"
  }

  operations.keys.combination(2) do |first, second|
    next if first.include?("shutdown")

    it "gives back each permit, and ends each connection, whenever #{first} and #{second} have been preempted" do
      expect(printed(<<~RUBY)).to eq "ended\n"
        require "puma/thread_pool"
        require "socket"
        require "heddle/testing"
        require "heddle/puma"
        support = Heddle.const_get(:PumaSupport)
        settings = support.const_get(:Settings).new(fibers: 1)
        Client = Struct.new(:to_io) do
          def timeout = 0.05
          def close = to_io.close
        end
        paths = $LOADED_FEATURES.grep(%r{/heddle/puma/(fiber_pool|connection|permits)\\.rb})
        Heddle::Testing.explore(strategy: :random, runs: 60, clock: :virtual, paths:) do
          # As a request is: it waits amid the application, and the connection waits for the next one after it.
          stops = false
          pool = support.const_get(:FiberPool).new("pool", {}, settings) do |connection, client|
            pool.with_force_shutdown { Heddle.snooze }
            connection.wait_next(lambda do |waiting|
              read = waiting.to_io.read_nonblock(9, exception: false)
              connection.handle_next if read.is_a?(String)
              read != :wait_readable || stops
            end)
            true
          rescue Puma::ThreadPool::ForceShutdown
            false
          end
          clients = []
          connect = lambda do
            client, server = UNIXSocket.pair
            clients << client
            pool << Client.new(server)
          rescue RuntimeError
            # It shuts down.
            server.close
          end
          pool.start
          2.times { connect.call }
          tasks = [-> { #{operations[first].sub("connect", "connect.call")} }, -> { #{operations[second].sub("connect", "connect.call")} }]
          Heddle.await_all(*tasks.map { |task| Heddle.spin { task.call rescue IOError } })
          clients.each { |client| client.close unless client.closed? }
          #{"pool.shutdown" unless second.include?("shutdown")}
          left = [pool.pool_capacity, pool.backlog, pool.stats[:fibers]]
          raise "left: \#{left}" unless left == [1, 0, 0]
        end
        puts "ended"
      RUBY
    end
  end
end
