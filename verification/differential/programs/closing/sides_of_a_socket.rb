# frozen_string_literal: true

# close_read and close_write of a socket, in both orders: the second gives the number back, and a task that waits raises
# IOError or has read the end, but never reads from the next connection

TCPServer.open("127.0.0.1", 0) do |listener|
  kinds = {
    "UNIXSocket" => -> { UNIXSocket.pair },
    "TCPSocket" => -> { [TCPSocket.new("127.0.0.1", listener.addr[1]), listener.accept] },
    "IO" => -> { UNIXSocket.pair.then { |one, other| [IO.for_fd(one.fileno).tap { one.autoclose = false }, other] } }
  }
  waits = {
    "readpartial" => ->(io) { io.readpartial(100) }, "gets" => :gets.to_proc, "read" => :read.to_proc,
    "wait_readable" => ->(io) { io.wait_readable && io.readpartial(100) }
  }
  orders = [%i[close_write close_read], %i[close_read close_write]]
  kinds.to_a.product(waits.to_a, orders) do |(kind, open), (name, wait), sides|
    one, other = open.call
    number = one.fileno
    waiter = task { wait.call(one).then { |read| read.to_s.include?("SECRET") ? "SECRET" : "the end" } }
    settle
    sides.each { |side| one.__send__(side) }
    pairs = retake(number)
    mixed = intact?(pairs) ? "" : ", the next connection's bytes are lost"
    # The task reads the end if it runs between both closes.
    outcome = attempt { waiter.value }[/the end|SECRET|EOFError|IOError/].sub(/the end|EOFError/, "IOError")
    say "#{kind} #{name} #{sides.join(", ")}: #{outcome}#{mixed}, #{one.closed?}"
    [*pairs.flatten, other].each(&:close)
  end
end
