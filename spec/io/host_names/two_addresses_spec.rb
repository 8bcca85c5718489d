# frozen_string_literal: true

require "json"
require "tempfile"

# Needs a network namespace of its own, in which names have two addresses for Ruby itself, too.
RSpec.describe "TCPSocket.new of a host with an IPv6 and an IPv4 address" do
  hosts = <<~HOSTS
    127.0.0.1 localhost
    127.0.0.1 two.test
    ::1 two.test
    10.99.0.2 silent.test
    fd99::2 silent.test
    10.99.0.2 silent4.test
    127.0.0.1 silent6.test
    fd99::2 silent6.test
    10.98.0.1 unreachable.test
    fd98::1 unreachable.test
  HOSTS

  # Addresses without a host: the other end of a virtual cable with nothing behind it.
  network = <<~SHELL
    set -e
    ip link set lo up
    ip link add near type veth peer name far
    ip link set near up
    ip link set far up
    ip addr add 10.99.0.1/24 dev near
    ip -6 addr add fd99::1/64 dev near nodad
    ip neigh add 10.99.0.2 lladdr 02:00:00:00:00:01 dev near
    ip neigh add fd99::2 lladdr 02:00:00:00:00:01 dev near
    mount --bind "$1" /etc/hosts
    shift
    exec "$@"
  SHELL

  connections = {
    "both refuse" => 'TCPSocket.new("two.test", 1)',
    "both accept" => 'TCPSocket.new("two.test", BOTH).peeraddr',
    "only IPv4 accepts" => 'TCPSocket.new("two.test", V4).peeraddr',
    "only IPv6 accepts" => 'TCPSocket.new("two.test", V6).peeraddr',
    "IPv6 is silent, and IPv4 accepts" => 'TCPSocket.new("silent6.test", BOTH).peeraddr',
    # rubocop:disable RealTime/Limit -- all expire; the second attempt begins after 0.25 s
    "IPv6 is silent, and IPv4 refuses" => 'TCPSocket.new("silent6.test", 1, connect_timeout: 0.4)',
    "both are silent" => 'TCPSocket.new("silent.test", 1, connect_timeout: 0.4)',
    "both are silent, within Timeout.timeout" => 'Timeout.timeout(0.4) { TCPSocket.new("silent.test", 1) }',
    "the only one is silent" => 'TCPSocket.new("silent4.test", 1, connect_timeout: 0.4)',
    "both are silent, with an open_timeout" => 'TCPSocket.new("silent.test", 1, open_timeout: 0.4)',
    "the only one is silent, with an open_timeout" => 'TCPSocket.new("silent4.test", 1, open_timeout: 0.4)',
    "both are unreachable" => 'TCPSocket.new("unreachable.test", 1)',
    "the service has a name" => 'TCPSocket.new("two.test", "http")',
    "the host is this one" => "TCPSocket.new(nil, BOTH).peeraddr",
    "it connects from an address" => 'TCPSocket.open("two.test", BOTH, "127.0.0.1", 0) { |socket| socket.addr[0] }',
    "it connects from a name" => 'TCPSocket.open("two.test", BOTH, "two.test", 0) { |socket| socket.addr[0] }',
    "it cannot connect from an address" => 'TCPSocket.new("two.test", BOTH, "10.1.1.1", 0)',
    "it cannot connect from a name" => 'TCPSocket.new("two.test", BOTH, "unreachable.test", 0)',
    "Net::HTTP connects" => 'Net::HTTP.start("silent.test", 1, open_timeout: 0.4)'
    # rubocop:enable RealTime/Limit
  }

  # Ruby 3.3 tries one address after the other, each until the kernel's time limit of two minutes.
  connections.delete("IPv6 is silent, and IPv4 accepts") if RUBY_VERSION < "3.4"

  program = <<~RUBY
    require "heddle"
    require "json"
    require "net/http"
    require "timeout"

    def outcome
      yield.inspect
    rescue StandardError => e
      [e.class.name, e.message]
    end

    # Ruby looks up both families in threads of its own, and goes on by IPv4 if the one for IPv6 is 50 ms late. So the
    # outcome of a round may depend on when these threads run.
    def compare(call)
      rounds = Array.new(5).lazy.map { round(call) }
      rounds.find { |thread, fiber,| thread == fiber } || round(call)
    end

    def round(call)
      runs = 0
      fiber = nil
      Heddle.run do
        other = Fiber.schedule { loop { sleep(a_moment) && (runs += 1) } }
        fiber = outcome(&call)
        other.kill
      end
      [Thread.new { outcome(&call) }.value, fiber, runs]
    end

    servers = { V4: ["127.0.0.1", 0], V6: ["::1", 0], BOTH: ["127.0.0.1", 4711] }.map do |name, (host, port)|
      server = TCPServer.new(host, port)
      Object.const_set(name, server.local_address.ip_port)
      server
    end
    servers << TCPServer.new("::1", BOTH)
    servers.each { |server| Thread.new { loop { server.accept } } }

    found = JSON.parse(ARGV.fetch(0)).transform_values { |source| compare(eval("-> { \#{source} }")) }
    puts JSON.generate(found)
  RUBY

  before(:context) do
    Tempfile.create do |file|
      file.write(hosts)
      file.flush
      command = ["unshare", "--map-root-user", "--net", "--mount", "sh", "-c", network, "sh", file.path,
                 *Processes::Fresh.ruby(program), "--", JSON.generate(connections)]
      output, errors, status = run_command(*command)
      @found = JSON.parse(output) if status.success?
      @refusal = errors.lines.first
    rescue Errno::ENOENT => e
      @refusal = e.message
    end
  end

  connections.each_key do |name|
    it "has the same outcome in a fiber as on a plain thread when #{name}" do
      skip "no network of its own: #{@refusal}" unless @found
      thread, fiber, = @found.fetch(name)

      expect(fiber).to eq(thread)
    end
  end

  it "lets other fibers run while it waits" do
    skip "no network of its own: #{@refusal}" unless @found
    runs = @found.slice("both are silent", "the only one is silent", "Net::HTTP connects").transform_values(&:last)

    expect(runs.values).to all(be_positive)
  end
end
