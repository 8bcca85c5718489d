# frozen_string_literal: true

module Heddle
  # The ancestor of what Heddle itself raises.
  class Error < StandardError; end

  # The backend that was asked for cannot be had here. The message says why.
  class BackendUnavailable < Error; end

  # @!parse class Stop < Exception; end

  # A Fiber::Scheduler. Ruby calls its hooks when a non-blocking fiber waits; programs need few of its methods.
  #
  # There is no loop fiber: a fiber that waits switches straight to the next one, and asks the kernel only if nobody
  # can go on. The idea is Polyphony's. A fiber may do a limited number of operations that succeed at once; then the
  # others have a turn. The idea is tokio's cooperative budget.
  #
  # Fibers that compute are preempted, if they are {YieldingFiber}s or `preempt: :all` is given: a ticker makes the
  # thread look, every `tick`, whether somebody else is due. Whoever was woken goes before those that were preempted,
  # and of these who has not yet computed for a `quantum` before who has, but nobody for ever: when others have gone
  # before one of these kinds for a `quantum`, one of it has its turn. They share the CPU a `quantum` at a time.
  #
  # A scheduler belongs to the thread that calls its first hook. Other threads may call {#unblock}, {#fiber_interrupt},
  # {#inspect}, {#backend}, {#ticker} and {#preemptions} only; the hooks that wait raise FiberError there.
  #
  # It can be copied by no `dup`, and used in no Ractor but the main one.
  #
  # All durations are in seconds: Integer, Float or Rational, whatever `Kernel#sleep` takes. What that refuses raises
  # here, too (ArgumentError, RangeError, TypeError).
  class Scheduler
    # @!method initialize(**options)
    #   Sets up the backend. The variable `HEDDLE_BACKEND` (`auto`, `io_uring`, `poll`) overrides `backend:`. A nil
    #   stands for an option's default.
    #
    #   The ticker is made when the first fiber that may be preempted begins, and not before. A signal that somebody
    #   uses is refused then: with `ticker: :signal`, `YieldingFiber.schedule` raises ArgumentError, and so does
    #   `Fiber.schedule` with `preempt: :all`. The signal is given back when the scheduler is closed, or as soon as the
    #   program sets a handler for it; the ticker goes on as `:timerfd` then.
    #
    #   @param options [Hash]
    #   @option options [:auto, :io_uring, :poll] :backend (:auto) `:auto` takes io_uring if it can be had, else poll
    #   @option options [Integer] :workers (4) at most so many native threads (1 to 1024) read and write regular files
    #     with poll; the default is libuv's number. At most 16 times as many look up host names.
    #   @option options [:yielding, :all, :none] :preempt (:yielding) which fibers are preempted: {YieldingFiber}s, all
    #     non-blocking ones, or none at all. What they resume, Enumerators for example, is preempted with them.
    #   @option options [Numeric] :quantum (0.01) seconds (0.0001 to 60) for which a fiber may compute while others that
    #     were preempted want to; nobody who was woken waits for it
    #   @option options [Numeric] :tick (0.001) seconds (0.0001 to the quantum) from one look whether somebody is due to
    #     the next; with a signal a tenth more, 0.1 ms at most. It decides how late those are who wait beside one that
    #     computes. The default is never longer than the quantum.
    #   @option options [:auto, :signal, :timerfd] :ticker (:auto) what makes the thread look: a native thread with a
    #     timerfd, which `:auto` takes, as it interrupts no system call; or a timer that sends the thread a signal,
    #     which ends waits of C libraries early (`poll`, `usleep`)
    #   @option options [String, Symbol, Integer] :signal ("USR2") the signal that a ticker may take, with `SIG` or
    #     without
    #   @option options [Numeric] :grace (5) seconds (0.001 to 86,400, or Float::INFINITY) that a fiber may take for its
    #     end when it has been told to end: by {Heddle.terminate}, by the end of its parent, or because the thread is
    #     interrupted or killed. Then it is abandoned: a line on `$stderr` names the fiber and where it is, its `ensure`
    #     clauses run, but can't wait, and if that doesn't end it, the scheduler never switches to it again. What needs
    #     longer is done in {Heddle.shield}, whose time doesn't count.
    #   @raise [BackendUnavailable] if `:io_uring` is asked for and cannot be had
    #   @raise [Ractor::UnsafeError] in another Ractor than the main one
    #   @raise [ArgumentError] for an option, or a `HEDDLE_BACKEND`, that is none of these; for a `signal:` that does
    #     not exist, or that Ruby or the system needs
    #   @raise [SystemCallError] if the system has no descriptors left
    #   @example For the rest of this thread
    #     Fiber.set_scheduler(Heddle::Scheduler.new)
    #     Fiber.schedule { sleep 1 }
    #   @example epoll, or kqueue where there is no epoll
    #     Fiber.set_scheduler(Heddle::Scheduler.new(backend: :poll, workers: 8))
    #   @example No fiber keeps the others waiting, and no signal is taken
    #     Fiber.set_scheduler(Heddle::Scheduler.new(preempt: :all, ticker: :timerfd))

    # @!method backend
    #   @return [:io_uring, :poll] the backend that was taken
    #   @example
    #     Heddle.run { Fiber.scheduler.backend } # => :io_uring

    # @!method ticker
    #   @return [:signal, :timerfd, nil] the ticker that was taken; nil if no fiber that may be preempted has begun yet
    #   @example
    #     Heddle.run do
    #       YieldingFiber.schedule { cpu_work }
    #       Fiber.scheduler.ticker
    #     end # => :timerfd

    # @!method preemptions
    #   @return [Integer] how often a fiber has lost its turn because it computed
    #   @example
    #     Heddle.run do
    #       YieldingFiber.schedule { fib(30) }
    #       sleep 0.01
    #       Fiber.scheduler.preemptions
    #     end # => 2

    # @!method inspect
    #   Tells how many fibers could go on, and how many wait, for what. Works on any thread.
    #
    #   @return [String]
    #   @example
    #     Heddle.run do
    #       2.times { Fiber.schedule { sleep 1 } }
    #       Fiber.scheduler.inspect
    #     end # => "#<Heddle::Scheduler:0x… backend=io_uring runnable=0 waiting=3 (close: 1, sleep: 2)>"

    # @!method run
    #   Lets all other fibers run to their end. The scheduler can be used further.
    #
    #   @return [void]
    #   @raise [SystemExit] if a fiber calls `exit`, once the others have ended
    #   @raise what strikes the thread meanwhile (Ctrl-C, `Thread#raise`); the other fibers are left waiting

    # @!method close
    #   Lets all other fibers run to their end, then gives back the backend and the workers. If Ctrl-C or `Thread#kill`
    #   ends the thread, the fibers are cancelled instead; their `ensure` clauses run. Further calls do nothing. A hook
    #   that is called later sets up a new backend.
    #
    #   A scheduled fiber may call it, too: it returns when the others have ended, and the fiber goes on without a
    #   scheduler. If several fibers do so at the same time, the last of them closes it.
    #
    #   @return [void]
    #   @raise [FiberError] in a fiber that others wait for, as a parent waits for the children that it has spun
    #   @raise [SystemExit] if a fiber calls `exit`, once the others have ended
    #   @raise what strikes the thread meanwhile, once the other fibers have been cancelled
    #   @example Ruby calls it
    #     Fiber.set_scheduler(Heddle::Scheduler.new)
    #     Fiber.schedule { sleep 1 }
    #     Fiber.set_scheduler(nil) # takes one second

    # @!group Hooks

    # @!method scheduler_close
    #   Called at the end of the thread or the process, and by `Fiber.set_scheduler`. Waits for the fibers, then calls
    #   {#close}, which a subclass may override.
    #
    #   @api private
    #   @return [void]
    #   @raise (see Heddle::Scheduler#close)

    # @!method fiber(*arguments, storage: true, &block)
    #   `Fiber.schedule`. The block runs at once, until it first waits; then it is the others' turn. An error that ends
    #   it is reported on `$stderr`, as a thread's is, and goes no further.
    #
    #   @api private
    #   @param arguments [Array] what the block is given
    #   @param storage [Hash, true, nil] as Fiber.new takes it; `true` inherits a copy
    #   @return [Fiber] the new fiber, which may have ended already
    #   @raise [ArgumentError] without a block

    # @!method block(blocker, timeout = nil)
    #   Mutex, Monitor, Queue, SizedQueue, `Thread#join`.
    #
    #   @api private
    #   @param blocker [Object] what the fiber waits for
    #   @param timeout [Numeric, nil] seconds; nil is for ever
    #   @return [Boolean] false if the time was up

    # @!method unblock(blocker, fiber)
    #   Ends the fiber's {#block} or {#kernel_sleep}. Comes from any thread, and from trap handlers.
    #
    #   @api private
    #   @param blocker [Object]
    #   @param fiber [Fiber]
    #   @return [void]

    # @!method kernel_sleep(duration = nil)
    #   `sleep`, `Mutex#sleep`, `ConditionVariable#wait`. With 0 the others have a turn.
    #
    #   @api private
    #   @param duration [Numeric, nil] seconds; nil is until {#unblock}
    #   @return [Boolean] false if the time was up, true if {#unblock} came first, or if it was 0

    # @!method yield
    #   Lets the others have a turn, as `sleep 0` does in programs.
    #
    #   @api private
    #   @note Ruby calls it from 4.0 on, when a signal came in a blocking call.
    #   @return [void]

    # @!method io_wait(io, events, timeout)
    #   `IO#wait*`, `accept`, `connect`, `recv`, and reads and writes that found nothing to do.
    #
    #   @api private
    #   @param io [IO]
    #   @param events [Integer] IO::READABLE, IO::PRIORITY and IO::WRITABLE, or'ed together
    #   @param timeout [Numeric, nil] seconds; with nil `IO#timeout` counts
    #   @return [Integer, false] the events that have come; false if the time was up
    #   @raise [IO::TimeoutError] if `IO#timeout` ends a read or a write
    #   @raise [IOError] if the IO is closed
    #   @raise [SystemCallError] if the system cannot wait for it
    #   @raise [ArgumentError] for other events

    # @!method io_read(io, buffer, length, offset)
    #   `IO#read`, `gets`, `readpartial` and the like, at the IO's position.
    #
    #   @api private
    #   @note From version 4 of its interface on, Ruby passes `offset` before `length`, and `length` is then the most to
    #     transfer, in a single attempt.
    #   @param io [IO]
    #   @param buffer [IO::Buffer]
    #   @param length [Integer] the least to transfer, in bytes; 0 is a single attempt
    #   @param offset [Integer] where in the buffer to begin
    #   @return [Integer] bytes, 0 at the end, or the negated errno (that of EAGAIN if an attempt found nothing)
    #   @raise [ArgumentError] if the buffer is too small
    #   @raise [IOError] if the IO is closed

    # @!method io_write(io, buffer, length, offset)
    #   `IO#write`, `<<`, `puts` and the like, at the IO's position.
    #
    #   @api private
    #   @note (see Heddle::Scheduler#io_read)
    #   @note Ruby 3.3 and 3.4 write out an IO's own buffer without it.
    #   @param (see Heddle::Scheduler#io_read)
    #   @return [Integer] bytes, or the negated errno
    #   @raise (see Heddle::Scheduler#io_read)

    # @!method io_pread(io, buffer, from, length, offset)
    #   `IO#pread`.
    #
    #   @api private
    #   @note (see Heddle::Scheduler#io_read)
    #   @param (see Heddle::Scheduler#io_read)
    #   @param from [Integer] where in the file to begin
    #   @return (see Heddle::Scheduler#io_read)
    #   @raise (see Heddle::Scheduler#io_read)

    # @!method io_pwrite(io, buffer, from, length, offset)
    #   `IO#pwrite`.
    #
    #   @api private
    #   @note (see Heddle::Scheduler#io_read)
    #   @note Ruby 3.3 and 3.4 call it without the GVL, so there `IO#pwrite` goes to Heddle another way.
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
    #   @return [Array<Array<IO>>, nil] those that are ready; nil if the time was up
    #   @raise what IO.select raises

    # @!method io_close(descriptor)
    #   `IO#close`. The descriptor is closed before this returns.
    #
    #   @api private
    #   @note Ruby calls it from 4.0 on.
    #   @param descriptor [Integer]
    #   @return [Boolean] whether it was one; if not, Ruby tries itself and reports the error

    # @!method timeout_after(duration, exception, message)
    #   `Timeout.timeout`. Takes no thread, and hits the fiber that called it, wherever that waits.
    #
    #   @api private
    #   @param duration [Numeric] seconds; infinity, and what is not a number, are for ever
    #   @param exception [Class, Exception] what is raised when the time is up. An exception object that `raise` raises
    #     itself, and is no StandardError, is raised again where the block swallows it, until the block ends:
    #     `Timeout.timeout` makes such a one if the program gives no class.
    #   @param message [String]
    #   @yieldparam duration [Numeric]
    #   @return [Object] the block's value
    #   @raise `exception`

    # @!method process_wait(pid, flags)
    #   `Process.wait`, `system`, backticks. Waits on a pidfd. Where there is none, a Ruby thread waits: for any child,
    #   for a group, for children that stop, on old kernels and other systems.
    #
    #   @api private
    #   @param pid [Integer] as `Process.wait` takes it
    #   @param flags [Integer] likewise
    #   @return [Process::Status, nil] nil if Process::WNOHANG is set and the child has not ended

    # @!method address_resolve(hostname)
    #   Every look-up of a host name. The system's resolver does it on a thread of its own.
    #
    #   @api private
    #   @note A subclass may override it. From Ruby 3.4 on `TCPSocket.new` then asks it, too.
    #   @param hostname [String]
    #   @return [Array<String>, nil] addresses; nil if there is no such host, and Ruby raises its usual error
    #   @raise [Socket::ResolutionError] if the resolver has another reason

    # @!method blocking_operation_wait(work)
    #   zlib, `IO#fsync`, `File#flock`, divisions of huge Integers: done in a thread. What is short, as `File.stat` is,
    #   is left to Ruby, which does it in place.
    #
    #   @api private
    #   @note Ruby calls it from 4.0 on. On 3.4 it is left out: there it cannot be declined, and every `File.stat` would
    #     pay for it.
    #   @param work [#call]
    #   @return [Object] the work's value, or nil if Ruby is to do it

    # @!method fiber_interrupt(fiber, exception)
    #   Raises in a fiber that waits on an IO which somebody, on any thread, closes.
    #
    #   @api private
    #   @note Ruby calls it from 4.0 on. On every Ruby Heddle ends what waits on an IO before Ruby closes it.
    #   @param fiber [Fiber, #alive?, #raise] the fiber; from version 5 of Ruby's interface on, what stands for it as
    #     long as the operation lasts that is to be interrupted
    #   @param exception [Exception] an IOError
    #   @return [void]

    # @!endgroup

    # `IO#pwrite` on Ruby 3.3 and 3.4. (Without a statement in the class, YARD gives its methods to the module.)
    private :write_at
  end
  private_constant :Stop
end
