# frozen_string_literal: true

# Closing a socket that lingers lets another thread run, which reads what the close waits for

Socket.open(:INET, :STREAM) do |listener|
  listener.setsockopt(:SOCKET, :RCVBUF, 4096)
  listener.bind(Addrinfo.tcp("127.0.0.1", 0))
  listener.listen(1)
  client = Socket.tcp("127.0.0.1", listener.local_address.ip_port)
  accepted, = listener.accept
  client.setsockopt(Socket::Option.linger(true, 60))
  sent = 0
  while (written = client.write_nonblock("x" * 65_536, exception: false)) != :wait_writable
    sent += written
  end
  started = Thread::Queue.new
  # Reads natively: a thread without a scheduler.
  reader = Thread.new do
    started.pop
    accepted.read.bytesize
  end
  started.push(true)
  client.close
  say reader.value == sent
end
