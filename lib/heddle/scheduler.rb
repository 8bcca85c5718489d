# frozen_string_literal: true

module Heddle
  # Raised if the requested backend is not available. The message says why.
  class BackendUnavailable < Error; end

  # @!parse class Stop < Exception; end

  # A Fiber::Scheduler. Ruby calls its hooks when a non-blocking fiber waits; programs call few of its methods.
  #
  # There is no event-loop fiber. A fiber that waits switches directly to the next runnable fiber, and asks the kernel
  # only if no fiber is runnable; the idea is Polyphony's. A fiber may do a limited number of operations that succeed at
  # once before it lets the others run; the idea is tokio's cooperative budget.
  #
  # {YieldingFiber}s are preempted when they compute, and with `preempt: :all` so are all fibers. Every `tick`, a ticker
  # makes the thread check whether another fiber is due. Fibers that were woken run before fibers that were preempted.
  # Among the preempted fibers, those that have not yet computed for a `quantum` run first. No kind starves: when others
  # have run before it for a `quantum`, one fiber of that kind runs. The preempted fibers share the CPU in slices of a
  # `quantum`.
  #
  # A scheduler belongs to the thread that calls its first hook. Other threads may call only {#unblock},
  # {#fiber_interrupt}, {#inspect}, {#stats}, {#backend} and {#ticker}. Hooks that wait raise FiberError
  # there.
  #
  # A scheduler cannot be copied by `dup`, and works in the main Ractor only.
  #
  # All durations are in seconds. They are an Integer, a Float or a Rational, as `Kernel#sleep` takes them. Values that
  # `Kernel#sleep` refuses raise the same errors here (ArgumentError, RangeError, TypeError).
  class Scheduler
    # @!method initialize(**options)
    #   Opens the backend. The environment variable `HEDDLE_BACKEND` (`auto`, `io_uring`, `poll`) overrides `backend:`.
    #   nil stands for an option's default.
    #
    #   The ticker starts with the first fiber that may be preempted. If other code uses the ticker's signal by then,
    #   the call that starts the fiber raises ArgumentError: `YieldingFiber.schedule` with `ticker: :signal`, and also
    #   `Fiber.schedule` with `preempt: :all`. The signal is released when the scheduler closes, or when the program
    #   sets a handler for it. In the latter case the ticker continues as `:timerfd`.
    #
    #   @param options [Hash]
    #   @option options [:auto, :io_uring, :poll] :backend (:auto) `:auto` is io_uring where it is available, else poll
    #   @option options [Integer] :workers (4) the highest number of native threads (1 to 1024) that read and write
    #     regular files with the poll backend. The default is libuv's. Host names are looked up by up to 16 times as
    #     many.
    #   @option options [:yielding, :all, :none] :preempt (:yielding) which fibers are preempted: {YieldingFiber}s, all
    #     non-blocking fibers, or none. What these fibers resume, such as an Enumerator, is preempted with them.
    #   @option options [Float, Integer, Rational] :quantum (0.01) seconds (0.0001 to 60): how long a fiber may compute
    #     while other preempted fibers are runnable. Fibers that were woken do not wait for its end.
    #   @option options [Float, Integer, Rational] :tick (0.001) seconds (0.0001 to the quantum) between two checks
    #     whether another fiber is due. With a signal the interval is longer by a tenth, or 0.1 ms if that is less. It
    #     determines how late a fiber wakes beside a CPU-bound fiber. The default is at most the quantum. While all
    #     fibers yield by themselves after a small part of it, up to three of four checks are left out.
    #   @option options [:auto, :signal, :timerfd] :ticker (:auto) what makes the thread check. `:timerfd` is a native
    #     thread with a timerfd; `:auto` selects it, because it interrupts no system call. `:signal` is a timer that
    #     sends the thread a signal, which ends waits in C libraries early (`poll`, `usleep`).
    #   @option options [String, Symbol, Integer] :signal ("USR2") the signal that a ticker may use, with or without
    #     `SIG`
    #   @option options [Float, Integer, Rational] :grace (5) seconds (0.001 to 86,400, or Float::INFINITY) that a fiber
    #     has for its end after it was stopped: by {Heddle.stop}, by the end of its parent, or because its
    #     thread is interrupted or killed. After that it is abandoned. A line on `$stderr` names the fiber and where it
    #     is. The fiber is killed: its `ensure` clauses run, but cannot wait. If it survives that, the scheduler never
    #     switches to it again. The time in {Heddle.shield} does not count.
    #   @option options [:basic, :detailed] :stats (:basic) what {#stats} has. `:detailed` adds the histograms, which
    #     cost a read of the clock for each wake-up and each switch.
    #   @option options [Float, Integer, Rational, nil] :stall_after (nil) seconds (0.01 to 3,600): a fiber that keeps
    #     the thread for longer is reported, see {Heddle.on_stall}. nil is off.
    #   @option options [Boolean, nil] :busy_poll (true) whether the thread may poll repeatedly, for up to 100 µs,
    #     before it sleeps, while its waits are short. That answers sooner, and takes CPU time that other processes may
    #     need.
    #   @option options [Array<String>] :cooperative ([]) code that relies on no other fiber running between two of its
    #     waits, as libraries do that were written for cooperative fibers: names of gems, which may end with `*`
    #     (`"async*"`), and absolute paths of folders. Where the innermost frame is of such code, a tick neither
    #     preempts the fiber nor raises in it what `Timeout` and {Heddle.cancel_after} raise; frames of methods in C, of
    #     Ruby's own library and of Heddle count as their caller's. What such code calls back, a block of the
    #     program's, is preempted as usual.
    #   @raise [BackendUnavailable] if `:io_uring` is requested and not available
    #   @raise [Ractor::UnsafeError] in a Ractor other than the main one
    #   @raise [ArgumentError] for an invalid option or `HEDDLE_BACKEND`, and for a `signal:` that does not exist, or
    #     that Ruby or the system reserves
    #   @raise [SystemCallError] if the system has no descriptors left
    #   @example For the rest of this thread
    #     Fiber.set_scheduler(Heddle::Scheduler.new)
    #     Fiber.schedule { sleep 1 }
    #   @example epoll
    #     Fiber.set_scheduler(Heddle::Scheduler.new(backend: :poll, workers: 8))
    #   @example Preempt every fiber, and use no signal
    #     Fiber.set_scheduler(Heddle::Scheduler.new(preempt: :all, ticker: :timerfd))

    # @!method backend
    #   @return [:io_uring, :poll] the backend in use
    #   @example
    #     Heddle.run { Fiber.scheduler.backend } # => :io_uring

    # @!method ticker
    #   @return [:signal, :timerfd, nil] the ticker in use; nil if no fiber that may be preempted has started
    #   @example
    #     Heddle.run do
    #       YieldingFiber.schedule { cpu_work }
    #       Fiber.scheduler.ticker
    #     end # => :timerfd

    # @!method inspect
    #   Shows how many fibers are runnable, and how many wait for what. Any thread may call it.
    #
    #   @return [String]
    #   @example
    #     Heddle.run do
    #       2.times { Fiber.schedule { sleep 1 } }
    #       Fiber.scheduler.inspect
    #     end # => "#<Heddle::Scheduler:0x… backend=io_uring runnable=0 waiting=3 (close: 1, sleep: 2)>"

    # @!method run
    #   Waits until all other fibers have ended. The scheduler can be used afterwards.
    #
    #   @return [void]
    #   @raise [FiberError] in a fiber that other fibers wait for, as a parent waits for its children
    #   @raise [SystemExit] if a fiber calls `exit`; the other fibers keep waiting
    #   @raise an exception for the whole thread (Ctrl-C, `Thread#raise`); the other fibers keep waiting
    #   @example
    #     Fiber.set_scheduler(Heddle::Scheduler.new)
    #     Fiber.schedule { sleep 1 }
    #     Fiber.scheduler.run # takes one second

    # @!method close
    #   Waits until all other fibers have ended, then closes the backend and ends the workers. If a fiber calls `exit`
    #   (the block of {Heddle.run} is none of them), or Ctrl-C or `Thread#kill` ends the thread, the fibers are stopped
    #   instead; their `ensure` clauses run. Further calls do nothing. A hook that is called later opens a new backend.
    #
    #   A scheduled fiber may call it, too. It returns when the other fibers have ended, and the fiber continues without
    #   a scheduler. If several fibers call it at the same time, the last of them closes the scheduler.
    #
    #   @return [void]
    #   @raise [FiberError] in a fiber that other fibers wait for, as a parent waits for its children
    #   @raise [SystemExit] if a fiber calls `exit`, when the other fibers have been cancelled
    #   @raise an exception for the whole thread, when the other fibers have been cancelled
    #   @example Ruby calls it
    #     Fiber.set_scheduler(Heddle::Scheduler.new)
    #     Fiber.schedule { sleep 1 }
    #     Fiber.set_scheduler(nil) # takes one second

    # @!group Hooks

    # @!method scheduler_close
    #   Ruby calls it at the end of the thread or the process, and in `Fiber.set_scheduler`. Ends the root's tree of
    #   fibers, then calls {#close}, which a subclass may override.
    #
    #   @api private
    #   @return [void]
    #   @raise (see Heddle::Scheduler#close)

    # @!method fiber(*arguments, storage: true, &block) `Fiber.schedule`. The block runs at once, until it first waits.
    #   An error that ends it is reported on `$stderr`, as a thread's is, and is not propagated.
    #
    #   @api private
    #   @param arguments [Array] passed to the block
    #   @param storage [Hash, true, nil] as `Fiber.new` takes it; `true` inherits a copy
    #   @return [Fiber] the new fiber, which may have ended already
    #   @raise [ArgumentError] without a block

    # @!method block(blocker, timeout = nil)
    #   Mutex, Monitor, Queue, SizedQueue, `Thread#join`.
    #
    #   @api private
    #   @param blocker [Object] what the fiber waits for
    #   @param timeout [Numeric, nil] seconds; nil is for ever
    #   @return [Boolean] true after {#unblock}, false after the timeout

    # @!method unblock(blocker, fiber)
    #   Ends the fiber's {#block} or {#kernel_sleep}. Any thread may call it, and so may signal handlers.
    #
    #   @api private
    #   @param blocker [Object]
    #   @param fiber [Fiber]
    #   @return [void]

    # @!method kernel_sleep(duration = nil)
    #   `sleep`, `Mutex#sleep`, `ConditionVariable#wait`. A duration of 0 lets the other runnable fibers run.
    #
    #   @api private
    #   @param duration [Numeric, nil] seconds; nil is until {#unblock}
    #   @return [Boolean] true after {#unblock}, and for a duration of 0; false if the time elapsed

    # @!method yield
    #   Lets the other runnable fibers run, as `sleep 0` does in programs.
    #
    #   @api private
    #   @note Ruby calls it from 4.0 on, when a signal has interrupted a blocking call.
    #   @return [void]

    # @!method io_wait(io, events, timeout)
    #   `IO#wait*`, `accept`, `connect`, `recv`, and reads and writes that would block.
    #
    #   @api private
    #   @param io [IO]
    #   @param events [Integer] IO::READABLE, IO::PRIORITY and IO::WRITABLE, combined by `|`
    #   @param timeout [Numeric, nil] seconds; nil is the IO's own timeout (`IO#timeout`)
    #   @return [Integer, false] the events that have occurred; false after the timeout
    #   @raise [IO::TimeoutError] if `IO#timeout` ends a read or a write
    #   @raise [IOError] if the IO is closed
    #   @raise [SystemCallError] if the system cannot wait for the IO
    #   @raise [ArgumentError] for invalid events

    # @!method io_read(io, buffer, length, offset)
    #   `IO#read`, `gets`, `readpartial` and the like, at the IO's position.
    #
    #   @api private
    #   @note From version 4 of its scheduler interface on, Ruby passes `offset` before `length`. Then `length` is the
    #     highest number of bytes, for a single attempt.
    #   @param io [IO]
    #   @param buffer [IO::Buffer]
    #   @param length [Integer] the lowest number of bytes to transfer; 0 is a single attempt
    #   @param offset [Integer] the position in the buffer, in bytes
    #   @return [Integer] the number of bytes, 0 at the end of the file; or the negated errno, such as that of EAGAIN if
    #     a single attempt would block
    #   @raise [ArgumentError] if the buffer is too small
    #   @raise [IOError] if the IO is closed

    # @!method io_write(io, buffer, length, offset)
    #   `IO#write`, `<<`, `puts` and the like, at the IO's position.
    #
    #   @api private
    #   @note (see Heddle::Scheduler#io_read)
    #   @note Ruby 3.3 and 3.4 flush an IO's own buffer without it.
    #   @param (see Heddle::Scheduler#io_read)
    #   @return [Integer] the number of bytes, or the negated errno
    #   @raise (see Heddle::Scheduler#io_read)

    # @!method io_pread(io, buffer, from, length, offset)
    #   `IO#pread`.
    #
    #   @api private
    #   @note (see Heddle::Scheduler#io_read)
    #   @param (see Heddle::Scheduler#io_read)
    #   @param from [Integer] the position in the file, in bytes
    #   @return (see Heddle::Scheduler#io_read)
    #   @raise (see Heddle::Scheduler#io_read)

    # @!method io_pwrite(io, buffer, from, length, offset)
    #   `IO#pwrite`.
    #
    #   @api private
    #   @note (see Heddle::Scheduler#io_read)
    #   @note Ruby 3.3 and 3.4 call it without the GVL. There, `patches/io_pwrite.rb` passes `IO#pwrite` to Heddle.
    #   @param (see Heddle::Scheduler#io_pread)
    #   @return (see Heddle::Scheduler#io_write)
    #   @raise (see Heddle::Scheduler#io_read)

    # @!method io_select(readers, writers = nil, exceptions = nil, timeout = nil)
    #   `IO.select`.
    #
    #   @api private
    #   @param readers [Array<IO>, nil]
    #   @param writers [Array<IO>, nil]
    #   @param exceptions [Array<IO>, nil]
    #   @param timeout [Numeric, nil] seconds; nil is for ever
    #   @return [Array<Array<IO>>, nil] the ready IOs; nil after the timeout
    #   @raise what `IO.select` raises

    # @!method io_close(descriptor)
    #   `IO#close`. The descriptor is closed when this returns.
    #
    #   @api private
    #   @note Ruby calls it from 4.0 on.
    #   @param descriptor [Integer]
    #   @return [Boolean] false if it was not a descriptor; Ruby then closes it itself and reports the error

    # @!method timeout_after(duration, exception, *arguments)
    #   `Timeout.timeout`. Uses no thread. The exception is raised in the calling fiber, whatever it waits for.
    #
    #   @api private
    #   @param duration [Numeric] seconds; infinity, and what is not a number, are for ever
    #   @param exception [Class, Exception] what is raised when the time has elapsed. If it is an exception object that
    #     `raise` raises itself, and not a StandardError, it is raised again when the block rescues it, until the block
    #     ends. `Timeout.timeout` passes such an object if the program gives no class.
    #   @param arguments [Array] of the exception: usually its message. If there are more, it is made at once
    #   @yieldparam duration [Numeric]
    #   @return [Object] the block's value
    #   @raise `exception`

    # @!method process_wait(pid, flags)
    #   `Process.wait`, `system`, backticks. Waits on a pidfd. Where a pidfd does not do, a Ruby thread waits: for any
    #   child, for a process group, for children that stop, on old kernels and other systems.
    #
    #   @api private
    #   @param pid [Integer] as `Process.wait` takes it
    #   @param flags [Integer] as `Process.wait` takes them
    #   @return [Process::Status, nil] nil if Process::WNOHANG is set and the child has not ended

    # @!method address_resolve(hostname)
    #   Every look-up of a host name. The system's resolver runs on a native thread.
    #
    #   @api private
    #   @note A subclass may override it. From Ruby 3.4 on `TCPSocket.new` then calls the override, too.
    #   @param hostname [String]
    #   @return [Array<String>, nil] addresses; nil if there is no such host, and Ruby raises its usual error
    #   @raise [Socket::ResolutionError] if the resolver fails for another reason

    # @!method blocking_operation_wait(work)
    #   zlib, copies of large `IO::Buffer`s, divisions of huge Integers: they run in a thread. Short operations, such as
    #   `File.stat`, are left to Ruby, which runs them in place.
    #
    #   @api private
    #   @note Ruby calls it from 4.0 on. On 3.4 it is not defined: there it cannot decline an operation, so every
    #     `File.stat` would run in a thread.
    #   @param work [#call]
    #   @return [Object] the operation's value, or nil if Ruby is to run it

    # @!method fiber_interrupt(fiber, exception)
    #   Raises in a fiber that waits on an IO which another fiber, on any thread, closes.
    #
    #   @api private
    #   @note Ruby calls it from 4.0 on. With every Ruby, Heddle ends the operations on an IO before Ruby closes the IO.
    #   @param fiber [Fiber, #alive?, #raise] the fiber. From version 5 of Ruby's scheduler interface on, a proxy that
    #     is valid until the interrupted operation ends.
    #   @param exception [Exception] an IOError
    #   @return [void]

    # @!endgroup

    # Without a statement in the class, YARD adds its methods to the module.
    private :initialize_copy
  end
  private_constant :Stop
  private_constant :ClosingDescriptors
end
