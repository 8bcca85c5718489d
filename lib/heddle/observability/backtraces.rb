# frozen_string_literal: true

module Heddle
  # The backtraces of fibers, without Heddle's own frames. They are made of Strings, as Locations take three times the
  # memory, and each garbage collection in a process with many fibers takes long.
  module Backtraces
    FOLDER = File.expand_path("..", __dir__) + File::SEPARATOR
    # A fiber that waits is in one of these methods of the scheduler, which are written in Rust.
    HOOKS = %w[
      address_resolve block blocking_operation_wait close fiber io_close io_pread io_pwrite io_read io_select io_wait
      io_write kernel_sleep process_wait run scheduler_close start_task start_yielding suspend timeout_after write_at
      yield
    ].freeze
    TYPES = %w[Heddle::Scheduler Heddle::Native].freeze
    # Ruby's own methods that are written in Ruby.
    INTERNAL = "<internal:"
    # A line of a backtrace. Since Ruby 3.4 it has the method's class.
    FRAME = /\A(?<place>(?<path>.*):\d+):in [`'](?:.* in )?(?:(?<type>[^ ]*)[#.])?(?<name>[^ ]*)'\z/m
    # A hook that runs a block of the program's, below the method that waits.
    HOOK_BELOW = /:in (?:'Heddle::(?:Scheduler#|Native\.).*|`timeout_after)'\z/
    # How many of the innermost frames are looked at for the method that waits. Most fibers need the first few alone.
    INNERMOST = [4, 20].freeze
    PLACE = /\A.+?:\d+(?=:in )/
    # Ruby's methods that are called by those which obey a virtual clock.
    CLOCK_PATCHED = /\A(?:pop|deq|shift|push|enq|<<|join|sleep)\z/
    MONITOR = %r{:in 'Monitor#|/monitor\.rb:\d+:in }
    LOCK = Regexp.union(MONITOR, ":in 'Thread::Mutex#")
    private_constant :PLACE, :CLOCK_PATCHED, :MONITOR, :LOCK, :FOLDER, :HOOKS, :TYPES, :INTERNAL, :FRAME, :HOOK_BELOW,
                     :INNERMOST

    class << self
      # @param fiber [Fiber]
      # @return [Array<String>] empty for a fiber that has not started, or has ended
      def of(fiber)
        without_hook(fiber.backtrace || []).reject { |line| heddle?(line) }
      end

      # @param fiber [Fiber] a fiber that waits
      # @return [String, nil] the method in which it waits: the method of Heddle that the program has called, such as
      #   `Heddle::Semaphore#acquire`, or else the innermost method, such as `pop`
      def waiting_method(fiber)
        INNERMOST.lazy.filter_map { |count| method_in(without_hook(innermost(fiber, count))) }.first
      end

      # @return [Boolean] whether the fiber waits for a Monitor, which to Ruby is a Mutex. Known since Ruby 3.4, whose
      #   lines have the method's class; before only for MonitorMixin
      def in_monitor?(fiber)
        innermost(fiber, INNERMOST.first).find { |line| line.match?(LOCK) }&.match?(MONITOR)
      end

      # @param line [String, nil] of a backtrace
      # @return [String, nil] the file and the line
      def place_in(line) = line&.[](PLACE)

      # @return [String, nil] where the block is, unless it is one of Heddle's own
      def place(block)
        file, line = block&.source_location
        "#{file}:#{line}" if file && !file.start_with?(FOLDER)
      end

      private

      # The fiber that asks, such as for a deadlock's message, has the frames of that within its hook.
      def innermost(fiber, count)
        return fiber.backtrace(0, count) || [] unless fiber.equal?(Fiber.current)

        lines = fiber.backtrace
        lines.drop(lines.each_cons(2).find_index { |line, caller| hook?(line, caller) } || 0)
      end

      # @return [String, nil] nil if more lines are needed to tell
      def method_in(lines)
        own = lines.take_while { |line| heddle?(line) || line.start_with?(INTERNAL) }
        called = own.lazy.filter_map { |line| public_method(line) }.first
        return called if called || own.size == lines.size

        lines.find { |line| !heddle?(line) }[FRAME, :name]
      end

      def without_hook(lines)
        hook?(*lines.first(2)) ? lines.drop(1) : lines
      end

      # The lines of Ruby 3.3 do not have the class. There a method that is not written in Ruby is known by its place,
      # which is its caller's.
      def hook?(line = nil, caller = nil)
        frame = line && FRAME.match(line)
        return false unless frame && HOOKS.include?(frame[:name])
        return TYPES.include?(frame[:type]) if RUBY_VERSION >= "3.4"

        caller&.start_with?("#{frame[:place]}:") || false
      end

      def heddle?(line) = line.start_with?(FOLDER) || line.match?(HOOK_BELOW)

      # @return [String, nil] the method with its class, if it is a public one of Heddle's; or a patched one without it
      def public_method(line)
        return unless heddle?(line) && (frame = FRAME.match(line))

        case frame[:path].delete_prefix(FOLDER).delete_suffix(".rb").split("/")
        in ["structured", *] | ["run"] then module_method(frame[:name])
        in ["coordination" | "pools", file] then instance_method_of(file, frame[:name])
        # Of `ConditionVariable`, from Ruby 4.0 on: see {ConditionWait}.
        in ["patches", "mutex_sleep"] then frame[:name][/\Await\z/]
        in ["testing", "clock_patches"] then frame[:name][CLOCK_PATCHED]
        else nil
        end
      end

      def module_method(name)
        # Heddle's own methods call this one.
        "Heddle.#{name}" if Heddle.respond_to?(name) && name != "without_preemption"
      end

      def instance_method_of(file, name)
        type = file.split("_").map(&:capitalize).join
        public = Heddle.constants.include?(type.to_sym) && Heddle.const_get(type).public_method_defined?(name)
        "Heddle::#{type}##{name}" if public
      end
    end
  end
  private_constant :Backtraces
end
