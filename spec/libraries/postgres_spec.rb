# frozen_string_literal: true

# Another fiber ends most of the waits in the programs. If a waiting fiber stopped the whole thread, that other fiber
# could not run, and the example would hang.
RSpec.describe "PostgreSQL under Heddle" do
  include Libraries

  before(:context) { @server = DatabaseServer.postgres }

  before { skip_or_fail_without("the server of PostgreSQL") unless @server }

  after(:context) { @server&.stop }

  let(:library) { "pg" }
  let(:environment) { { "SERVER" => @server.folder } }
  let(:preamble) { <<~RUBY }
    def connect = PG.connect(host: ENV.fetch("SERVER"), user: "postgres", dbname: "postgres")
  RUBY

  it "lets other fibers run while one waits for a lock of the database" do
    expect(printed(<<~RUBY)).to eq "waits\nfree\nlocked\n"
      Heddle.run do
        holder = connect
        holder.exec("SELECT pg_advisory_lock(1)")
        waiter = Heddle.spin do
          connection = connect
          puts "waits"
          connection.exec("SELECT pg_advisory_lock(1)")
          puts "locked"
        end
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        sleep(0) until holder.exec(waiting).getvalue(0, 0) == "1"
        puts "free"
        holder.exec("SELECT pg_advisory_unlock(1)")
        Heddle.await(waiter)
      end
    RUBY
  end

  it "connects twenty times at once" do
    expect(printed(<<~RUBY)).to eq "190\n"
      Heddle.run do
        all = Array.new(20) { |number| Heddle.spin { connect.exec_params("SELECT $1::int", [number]).getvalue(0, 0).to_i } }
        p Heddle.await_all(*all).sum
      end
    RUBY
  end

  it "passes a notification from one fiber to another that waits for it" do
    expect(printed(<<~RUBY)).to eq %(["news", "hello"]\n)
      Heddle.run do
        listener = connect
        listener.exec("LISTEN news")
        heard = Heddle.spin { listener.wait_for_notify { |channel, _process, text| p [channel, text] } }
        connect.exec("NOTIFY news, 'hello'")
        Heddle.await(heard)
      end
    RUBY
  end

  it "runs transactions and prepared statements of many fibers" do
    expect(printed(<<~RUBY)).to eq "200\n"
      Heddle.run do
        first = connect
        first.exec("CREATE TABLE counts (count int); INSERT INTO counts VALUES (0)")
        clients = Array.new(10) do
          Heddle.spin do
            connection = connect
            connection.prepare("add", "UPDATE counts SET count = count + $1")
            10.times { connection.transaction { 2.times { connection.exec_prepared("add", [1]) } } }
          end
        end
        Heddle.await_all(*clients)
        puts first.exec("SELECT count FROM counts").getvalue(0, 0)
      end
    RUBY
  end

  it "copies into a table and out of it" do
    expect(printed(<<~RUBY)).to eq "true\n"
      Heddle.run do
        connection = connect
        connection.exec("CREATE TEMP TABLE lines (line text)")
        lines = Array.new(50_000) { |number| "line \#{number}\\n" }
        connection.copy_data("COPY lines FROM STDIN") { lines.each { |line| connection.put_copy_data(line) } }
        copied = []
        connection.copy_data("COPY lines TO STDOUT") do
          while (line = connection.get_copy_data)
            copied << line
          end
        end
        p copied == lines
      end
    RUBY
  end

  it "fetches a large result row by row" do
    expect(printed(<<~RUBY)).to eq "[100000, 5000050000]\n"
      Heddle.run do
        connection = connect
        connection.send_query("SELECT generate_series(1, 100000)")
        connection.set_single_row_mode
        rows = sum = 0
        connection.get_result.stream_each_row { |row| rows += 1 and sum += row.first.to_i }
        p [rows, sum]
      end
    RUBY
  end

  it "raises the database's errors in the fiber that caused them" do
    expect(printed(<<~RUBY)).to eq %(["PG::DivisionByZero", "1"]\n)
      Heddle.run do
        fails = Heddle.spin { connect.exec("SELECT 1 / 0") rescue $!.class.name }
        works = Heddle.spin { connect.exec("SELECT 1").getvalue(0, 0) }
        p Heddle.await_all(fails, works)
      end
    RUBY
  end

  it "ends a query by a time limit, and the connection stays usable" do
    expect(printed(<<~RUBY)).to eq "Timeout::Error\n1\n"
      require "timeout"
      Heddle.run do
        connection, watcher = connect, connect
        begin
          Timeout.timeout(0.05) { connection.exec("SELECT pg_sleep(60)") }
        rescue Timeout::Error => e
          p e.class
        end
        # The server ignores what would cancel a query that it has yet to begin. Perhaps none was sent, even.
        if connection.transaction_status == PG::PQTRANS_ACTIVE
          query = "SELECT state FROM pg_stat_activity WHERE pid = \#{connection.backend_pid}"
          sleep(0) until watcher.exec(query).getvalue(0, 0) == "active"
        end
        connection.cancel
        connection.discard_results
        puts connection.exec("SELECT 1").getvalue(0, 0)
      end
    RUBY
  end

  it "ends a query when its fiber is terminated" do
    expect(printed(<<~RUBY)).to eq "closed\n"
      Heddle.run do
        connection = connect
        query = Heddle.spin do
          connection.exec("SELECT pg_sleep(60)")
        ensure
          connection.close
          puts "closed"
        end
        sleep(0) until connection.transaction_status == PG::PQTRANS_ACTIVE
        Heddle.stop(query)
      end
    RUBY
  end

  it "lets a fiber compute while another fiber waits" do
    expect(printed(<<~RUBY)).to eq "1\n"
      Heddle.run do
        got = nil
        cpu_bound = Heddle::YieldingFiber.schedule { 1 until got }
        Fiber.schedule { got = connect.exec("SELECT 1").getvalue(0, 0) }
        sleep(0) while cpu_bound.alive?
        puts got
      end
    RUBY
  end
end
