# frozen_string_literal: true

# In each program, another fiber of the same thread ends the wait. If the call blocked the thread, the example would
# hang.
RSpec.describe "An adapter of Heddle::Offload" do
  include Libraries

  it "lets fibers run while SQLite waits for a lock" do
    expect(printed(<<~RUBY, library: "sqlite3")).to eq "[[7]]\n"
      require "heddle/offload/sqlite3"
      require "tmpdir"
      Dir.mktmpdir do |folder|
        holder, waiter = Array.new(2) { SQLite3::Database.new(File.join(folder, "looms.db")) }
        waiter.busy_timeout = 60_000
        holder.execute("CREATE TABLE looms (id int)")
        holder.execute("BEGIN EXCLUSIVE")
        Heddle.run do
          Heddle.spin do
            holder.execute("INSERT INTO looms VALUES (7)")
            holder.execute("COMMIT")
          end
          p waiter.execute("SELECT id FROM looms")
        end
      end
    RUBY
  end

  it "lets fibers run while mysql2 connects" do
    expect(printed(<<~RUBY, library: "mysql2")).to eq "Mysql2::Error::ConnectionError\n"
      require "heddle/offload/mysql2"
      Heddle.run do
        server = TCPServer.new("127.0.0.1", 0)
        Heddle.spin { server.accept.close }
        Mysql2::Client.new(host: "127.0.0.1", port: server.addr[1])
      rescue Mysql2::Error => e
        p e.class
      end
    RUBY
  end

  it "lets fibers run while typhoeus makes requests, alone and in a Hydra" do
    expect(printed(<<~RUBY, library: "typhoeus")).to eq "alone\n[\"one\", \"two\"]\n"
      require "heddle/offload/typhoeus"
      Heddle.run do
        server = TCPServer.new("127.0.0.1", 0)
        url = "http://127.0.0.1:\#{server.addr[1]}/"
        Heddle.spin do
          3.times do
            client = server.accept
            path = client.gets.split.fetch(1).delete("/")
            client.write("HTTP/1.1 200 OK\\r\\ncontent-length: \#{path.size}\\r\\nconnection: close\\r\\n\\r\\n\#{path}")
            client.close
          end
        end
        puts Typhoeus.get(url + "alone").body
        hydra = Typhoeus::Hydra.new
        requests = %w[one two].map { |path| Typhoeus::Request.new(url + path).tap { |request| hydra.queue(request) } }
        hydra.run
        p requests.map { |request| request.response.body }
      end
    RUBY
  end

  it "lets fibers run while grpc waits for an answer" do
    expect(printed(<<~RUBY, library: "grpc", environment: { "RUBYOPT" => "-W0" })).to eq "\"answer\"\n"
      require "heddle/offload/grpc"
      GATE = Queue.new
      class Message < String
        def self.encode(text) = text
        def self.decode(text) = new(text)
      end
      class Service
        include GRPC::GenericService
        self.service_name = "heddle.Test"
        self.marshal_class_method = :encode
        self.unmarshal_class_method = :decode
        rpc :Ask, Message, Message
        def ask(_message, _call) = Message.new(GATE.pop)
      end
      server = GRPC::RpcServer.new(pool_size: 1)
      port = server.add_http2_port("127.0.0.1:0", :this_port_is_insecure)
      server.handle(Service.new)
      thread = Thread.new { server.run }
      server.wait_till_running
      Heddle.run do
        Heddle.spin { GATE.push("answer") }
        p Service.rpc_stub_class.new("127.0.0.1:\#{port}", :this_channel_is_insecure).ask(Message.new("question"))
      end
      server.stop
      thread.join
    RUBY
  end

  it "lets fibers run while one waits for a Ractor" do
    output = printed(<<~RUBY, library: "heddle/offload/ractor")
      $VERBOSE = nil
      Warning[:experimental] = false
      ractor = Ractor.new { Ractor.receive + 1 }
      Heddle.run do
        Heddle.spin { ractor.send(6) }
        p ractor.respond_to?(:take) ? ractor.take : ractor.value
      end
    RUBY
    expect(output).to eq "7\n"
  end
end
