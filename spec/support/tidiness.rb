# frozen_string_literal: true

# Checks that an example leaves nothing behind that could disturb the next one.
module Tidiness
  class LeftBehind < StandardError; end

  # Seconds for an example's threads to end by themselves.
  GRACE = 20
  # Threads of the standard library, which don't end.
  LASTING_THREADS = ["Timeout stdlib thread"].freeze
  # After so many more mappings garbage is collected. Linux gives a process 65,530, and the stack of a fiber that has
  # ended takes two until the fiber is collected: when that is depends on all examples before.
  MAPPINGS = 8192

  module_function

  def check(location)
    process = Process.pid
    threads = Thread.list
    yield
    end_stray_child unless Process.pid == process

    left = [take_away_scheduler, *stop_threads(Thread.list - threads)].compact
    collect_stacks
    raise LeftBehind, left.join("\n"), [location] if left.any?
  end

  # In a forked child that came out of its example, RSpec would go on with the other examples.
  def end_stray_child
    warn "A forked child has left its example"
    exit!(1)
  end

  def take_away_scheduler
    return unless (scheduler = Fiber.scheduler)

    Fiber.set_scheduler(nil)
    "the example left #{scheduler.inspect} as its thread's scheduler"
  end

  def collect_stacks
    now = mappings
    @kept = [@kept || 0, now].min
    return if now < @kept + MAPPINGS

    GC.start
    @kept = mappings
  end

  def mappings
    File.foreach("/proc/self/maps").count
  end

  def stop_threads(threads)
    deadline = Clock.now + GRACE
    threads.reject { |thread| LASTING_THREADS.include?(thread.name) || ends?(thread, deadline) }.map do |thread|
      trace = thread.backtrace
      thread.kill
      ["the example left #{thread.inspect}", *trace].join("\n    ")
    end
  end

  def ends?(thread, deadline)
    thread.join([deadline - Clock.now, 0].max)
  rescue Exception # rubocop:disable Lint/RescueException -- it ended, by whatever error
    true
  end
end
