# frozen_string_literal: true

require "monitor"
require "socket"
require "timeout"

# Each kind of wait that a fiber can be in. A wait lasts until it is ended from outside, and then tidies up.
module Waits
  LONG = 60
  MORE_THAN_A_PIPE_HOLDS = "x" * (1 << 20)

  KINDS = {
    "Kernel#sleep" => -> { sleep },
    "Kernel#sleep with a time" => -> { sleep(LONG) },
    "IO#read" => -> { IO.pipe { |reader, _writer| reader.read(1) } },
    "IO#gets" => -> { IO.pipe { |reader, _writer| reader.gets } },
    "IO#write" => -> { IO.pipe { |_reader, writer| writer.write(MORE_THAN_A_PIPE_HOLDS) } },
    "IO#wait_readable" => -> { IO.pipe { |reader, _writer| reader.wait_readable } },
    "IO#wait_readable with a timeout" => -> { IO.pipe { |reader, _writer| reader.wait_readable(LONG) } },
    "IO.select" => -> { IO.pipe { |reader, _writer| IO.select([reader], nil, nil, LONG) } },
    "IO.copy_stream" => -> { IO.pipe { |reader, _writer| IO.copy_stream(reader, File::NULL) } },
    "TCPServer#accept" => -> { listening(&:accept) },
    "UDPSocket#recv" => -> { receiving { |socket| socket.recv(1) } },
    "Queue#pop" => -> { Queue.new.pop },
    "Queue#pop with a timeout" => -> { Queue.new.pop(timeout: LONG) },
    "SizedQueue#push" => -> { SizedQueue.new(1).push(:first).push(:second) },
    "Mutex#lock" => -> { with_held_mutex(&:lock) },
    "Mutex#sleep" => -> { Mutex.new.then { |mutex| mutex.synchronize { mutex.sleep } } },
    "ConditionVariable#wait" => lambda {
      mutex = Mutex.new
      mutex.synchronize { ConditionVariable.new.wait(mutex) }
    },
    "Monitor's condition" => lambda {
      monitor = Monitor.new
      monitor.synchronize { monitor.new_cond.wait }
    },
    "Thread#join" => -> { with_waiting_thread(&:join) },
    "Thread#join with a timeout" => -> { with_waiting_thread { |thread| thread.join(LONG) } },
    "Process.wait" => -> { with_process { |pid| Process.wait(pid) } },
    "name resolution" => -> { Addrinfo.getaddrinfo("localhost", nil) },
    "Timeout.timeout" => -> { Timeout.timeout(LONG) { sleep } },
    "an Enumerator's generator" => -> { Enumerator.new { |yielder| yielder << sleep }.next },
    "a fiber that it has resumed" => -> { Fiber.new { sleep }.resume }
  }.freeze

  module_function

  def listening
    server = TCPServer.new("127.0.0.1", 0)
    yield server
  ensure
    server.close
  end

  def receiving
    socket = UDPSocket.new
    socket.bind("127.0.0.1", 0)
    yield socket
  ensure
    socket.close
  end

  def with_held_mutex
    mutex = Mutex.new
    holder = Fiber.new { mutex.synchronize { Fiber.yield } }
    holder.resume
    yield mutex
  ensure
    holder.resume
  end

  def with_waiting_thread
    gate = Queue.new
    thread = Thread.new { gate.pop }
    yield thread
  ensure
    gate.push(:open)
    thread.join
  end

  def with_process
    pid = spawn("sleep", LONG.to_s)
    yield pid
  ensure
    Process.kill(:KILL, pid)
    # Detached instead of waited for: a fiber that is being killed can't wait.
    Process.detach(pid)
  end
end
