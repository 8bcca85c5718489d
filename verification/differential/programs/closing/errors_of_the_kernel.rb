# frozen_string_literal: true

# close raises what the kernel answers, and a task that reads raises IOError

# A seccomp filter, which needs no privilege, makes the kernel refuse to close the numbers, each with its error.
module Refusal
  CALLS = {
    "x86_64" => { close: 3, prctl: 157, seccomp: 317 }, "aarch64" => { close: 57, prctl: 167, seccomp: 277 }
  }.freeze
  NO_NEW_PRIVILEGES = 38
  SET_FILTER = 1
  OF_ALL_THREADS = 1
  # Instructions, places in the data of a call, and answers.
  LOAD = 0x20
  JUMP_IF_EQUAL = 0x15
  RETURN = 0x06
  NUMBER_OF_CALL = 0
  FIRST_ARGUMENT = 16
  ALLOW = 0x7fff0000
  FAIL = 0x50000

  def self.install(errors)
    calls = CALLS[RbConfig::CONFIG["host_cpu"]] or raise LoadError, "this processor's system calls are unknown"
    code = filter(calls[:close], errors).map { |instruction| instruction.pack("SCCL") }
    program = [code.size, code.join].pack("Sx6P")
    syscall(calls[:prctl], NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    syscall(calls[:seccomp], SET_FILTER, OF_ALL_THREADS, [program].pack("P").unpack1("J"))
  rescue SystemCallError => e
    raise LoadError, "the kernel takes no seccomp filter: #{e.message}"
  end

  # Each instruction has an operation, how many to skip if a test is true or false, and an operand.
  def self.filter(close, errors)
    tests = errors.flat_map { |number, error| [[JUMP_IF_EQUAL, 0, 1, number], [RETURN, 0, 0, FAIL | error::Errno]] }
    [[LOAD, 0, 0, NUMBER_OF_CALL], [JUMP_IF_EQUAL, 0, tests.size + 1, close], [LOAD, 0, 0, FIRST_ARGUMENT], *tests,
     [RETURN, 0, 0, ALLOW]]
  end
end

ios = [Errno::EIO, Errno::ENOSPC, Errno::EDQUOT, Errno::EINTR, Errno::EBADF].flat_map do |error|
  file = File.open(error.name, "w")
  file.write("buffered")
  [file, *UNIXSocket.pair, *IO.pipe].map { |io| [io, error] }
end
Refusal.install(ios.to_h { |io, error| [io.fileno, error] })

ios.each_with_index do |(io, error), index|
  waiter = task { attempt { io.readpartial(100) } }
  settle
  # In the main task, in another one, and in a thread.
  outcome = [-> { attempt { io.close } }, -> { task { attempt { io.close } }.value },
             -> { Thread.new { attempt { io.close } }.value }][index % 3].call
  say error, outcome, io.closed?, waiter.value
end
