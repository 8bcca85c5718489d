# frozen_string_literal: true

require "English"
require "fileutils"
require "socket"
require "tempfile"
require "timeout"
require "tmpdir"
require_relative "../../../spec/support/settling"

# What a differential program may use beside Ruby itself. Tasks are threads on plain Ruby, and fibers under Heddle.
module Program
  # A program without a scheduler.
  class ThreadTask
    def initialize(&)
      @thread = Thread.new(&)
      @thread.report_on_exception = false
    end

    # Waits for the task's end. Returns nil if `limit` seconds pass first. Does not raise the task's error.
    def join(limit = nil)
      @thread.join(limit) && self
    rescue Exception # rubocop:disable Lint/RescueException -- `value` raises it
      self
    end

    def value = @thread.value
    def alive? = @thread.alive?

    def raise(...)
      @thread.raise(...)
      self
    end

    def kill
      @thread.kill
      self
    end
  end

  # A program under a scheduler.
  class FiberTask
    def initialize(&block)
      @over = Thread::Queue.new
      @fiber = Fiber.schedule { run(&block) }
    end

    def join(limit = nil)
      limit ? @over.pop(timeout: limit) : @over.pop
      @over.closed? ? self : nil
    end

    def value
      join
      Kernel.raise @error if @error

      @value
    end

    def alive? = !@over.closed?

    def raise(...)
      @fiber.raise(...) if @fiber.alive?
      self
    end

    def kill
      @fiber.kill
      self
    end

    private

    def run
      ends_process = false
      @value = yield
    rescue Heddle.const_get(:Stop)
      # A task that is killed has no error, as on plain threads.
      Kernel.raise
    rescue SystemExit, SignalException
      # The scheduler raises it in the waiting fibers, once, as Ruby does on plain threads.
      ends_process = true
      Kernel.raise
    rescue Exception => e # rubocop:disable Lint/RescueException -- `value` raises it
      @error = e
    ensure
      @over.close unless ends_process
    end
  end

  class << self
    # Options of Heddle.run; nil on plain threads.
    attr_accessor :options

    # The programs of the folder roots/ call `scheduled` themselves.
    def run(path)
      File.basename(File.dirname(path)) == "roots" ? load(path) : scheduled { load(path) }
    end
  end

  # Runs the block where tasks are fibers, if they are.
  def scheduled(&block) = Program.options ? Heddle.run(**Program.options, &block) : block.call

  # Starts a task.
  def task(&) = (Program.options ? FiberTask : ThreadTask).new(&)

  # Starts a thread, which has a scheduler of its own where the program has one.
  def elsewhere(&block)
    thread = Thread.new { scheduled(&block) }
    thread.report_on_exception = false
    thread
  end

  # Returns, with a true value, when all other tasks and threads have reached their waits or ended.
  def settle = Settling.all

  # An address of this machine and a port that no other program uses, and that no server listens at yet.
  def own_address = ["127.#{64 + (Process.pid >> 16)}.#{(Process.pid >> 8) & 255}.#{Process.pid & 255}", 20_000]

  # Adds to the outcome that is compared.
  def say(*things)
    STDOUT.syswrite(things.map { |thing| "#{thing.is_a?(String) ? thing : thing.inspect}\n" }.join)
  end

  # The block's value, or what it raised, as text.
  def attempt
    yield
  rescue StandardError, NotImplementedError => e
    "#{e.class}: #{e.message}"
  end

  # Only the class of what the block raises: the message may depend on the order of the tasks.
  def error_of(&) = attempt(&).to_s[/\A[A-Z][\w:]*(?=: )/]

  # Bytes that no other part of the program writes.
  def bytes(size, seed) = Random.new(seed).bytes(size)

  def checksum(string) = string && "#{string.bytesize} bytes, #{string.sum(32)}"

  # Opens connections until one has the descriptor `number` of a closed connection. Returns all pairs, that connection
  # included.
  def retake(number)
    pairs = []
    pairs << UNIXSocket.pair until pairs.flatten.any? { |socket| socket.fileno == number } || pairs.size > 20
    pairs
  end

  # Returns what arrives at a connection to which only `message` was written.
  def intact?(pairs, message = "SECRET" * 10)
    pairs.all? do |one, other|
      [[one, other], [other, one]].all? do |from, to|
        from.write(message)
        to.read_nonblock(message.bytesize + 1, exception: false) == message
      end
    end
  end
end

include Program # rubocop:disable Style/MixinUsage -- programs are scripts
