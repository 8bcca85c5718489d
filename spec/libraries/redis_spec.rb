# frozen_string_literal: true

# Another fiber ends most of the waits in the programs. If a waiting fiber stopped the whole thread, that other fiber
# could not run, and the example would hang.
RSpec.describe "Redis under Heddle" do
  include Libraries

  before(:context) { @server = DatabaseServer.redis }

  before { skip_or_fail_without("redis-server") unless @server }

  after(:context) { @server&.stop }

  let(:library) { "redis" }
  let(:environment) { { "SERVER" => File.join(@server.folder, "socket") } }
  let(:preamble) { <<~RUBY }
    def connect = Redis.new(path: ENV.fetch("SERVER"), timeout: 30, reconnect_attempts: 0)
    connect.flushall
  RUBY

  it "lets other fibers run while one waits for a list's next element" do
    expect(printed(<<~RUBY)).to eq %(["list", "element"]\n)
      Heddle.run do
        Fiber.schedule { p connect.blpop("list") }
        Fiber.schedule { connect.rpush("list", "element") }
      end
    RUBY
  end

  it "lets fifty connections wait at the same time" do
    expect(printed(<<~RUBY)).to eq "50\n"
      Heddle.run do
        waiting = Array.new(50) { |number| Heddle.spin { connect.brpop("list \#{number}").last.to_i } }
        49.downto(0) { |number| connect.lpush("list \#{number}", 1) }
        p Heddle.await_all(*waiting).sum
      end
    RUBY
  end

  it "passes a message from one fiber to another that has subscribed" do
    expect(printed(<<~RUBY)).to eq "message\n"
      Heddle.run do
        subscribed = Queue.new
        subscriber = connect
        Fiber.schedule do
          subscriber.subscribe("channel") do |on|
            on.subscribe { subscribed.push(true) }
            on.message { |_channel, message| puts(message) || subscriber.unsubscribe }
          end
        end
        subscribed.pop
        connect.publish("channel", "message")
      end
    RUBY
  end

  it "returns each fiber its own response if many fibers share one connection" do
    expect(printed(<<~RUBY)).to eq "true\n"
      Heddle.run do
        shared = connect
        answers = Array.new(100) { |number| Heddle.spin { shared.echo(number.to_s) } }
        p Heddle.await_all(*answers) == (0...100).map(&:to_s)
      end
    RUBY
  end

  it "counts correctly with transactions and pipelines in many fibers" do
    expect(printed(<<~RUBY)).to eq "2000\n"
      Heddle.run do
        clients = Array.new(20) do
          Heddle.spin do
            client = connect
            10.times do
              client.multi { |transaction| 5.times { transaction.incr("count") } }
              client.pipelined { |pipeline| 5.times { pipeline.incr("count") } }
            end
          end
        end
        Heddle.await_all(*clients)
        puts connect.get("count")
      end
    RUBY
  end

  it "transfers values larger than a socket's buffer" do
    expect(printed(<<~RUBY)).to eq "true\n"
      Heddle.run do
        value = Random.bytes(8 << 20)
        connect.set("value", value)
        p connect.get("value") == value
      end
    RUBY
  end

  it "raises an error when a response does not come in time" do
    expect(printed(<<~RUBY)).to eq "Redis::TimeoutError\n"
      Heddle.run do
        connection = connect
        connection.ping
        # Not for the answers when the connection begins, whose lateness is another error.
        connection._client.read_timeout = 0.01
        connection.call("BLPOP", "nothing", 0)
      rescue => e
        p e.class
      end
    RUBY
  end

  it "lets a fiber compute while another fiber waits" do
    expect(printed(<<~RUBY)).to eq %(["list", "element"]\n)
      Heddle.run do
        got = nil
        cpu_bound = Heddle::YieldingFiber.schedule { 1 until got }
        Fiber.schedule { got = connect.blpop("list") }
        Fiber.schedule { connect.rpush("list", "element") }
        sleep(0) while cpu_bound.alive?
        p got
      end
    RUBY
  end
end
