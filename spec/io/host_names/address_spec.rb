# frozen_string_literal: true

require "net/http"
require "socket"

RSpec.describe "A fiber that connects to an address instead of a name" do
  let(:server) { TCPServer.new("127.0.0.1", 0) }
  let(:port) { server.local_address.ip_port }

  after { server.close }

  # How many threads begin while a fiber runs the block.
  def threads_begun(&block)
    begun = 0
    TracePoint.new(:thread_begin) { begun += 1 }.enable(target_thread: nil) { Heddle.run(&block) }
    begun
  end

  it "starts no thread in TCPSocket.new with a time limit" do
    limit = RUBY_VERSION < "4.0" ? { connect_timeout: 60 } : { open_timeout: 60 }

    expect(threads_begun { TCPSocket.new("127.0.0.1", port, **limit).close }).to eq(0)
  end

  it "starts no thread in Net::HTTP, whose connections have a time limit" do
    expect(threads_begun { Net::HTTP.new("127.0.0.1", port).start.finish }).to eq(0)
  end

  it "starts no thread for its Addrinfo with a time limit" do
    begun = threads_begun { %w[127.0.0.1 ::1].each { |address| Addrinfo.getaddrinfo(address, port, timeout: 60) } }

    expect(begun).to eq(0)
  end

  it "starts a thread for a name whose look-up has a time limit", if: RUBY_VERSION >= "4.0" do
    expect(threads_begun { Addrinfo.getaddrinfo("localhost", port, timeout: 60) }).to eq(1)
  end
end
