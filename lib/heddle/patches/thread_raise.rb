# frozen_string_literal: true

module Heddle # :nodoc:
  # `Thread.current.raise` means `Kernel#raise`, as Ruby's thread.c says: it belongs to the fiber that calls it. What
  # other threads raise belongs to the thread's root fiber; see scheduler/root_interrupts.rs.
  module ThreadRaise
    # The keywords that are Ruby's. All others are an argument of the exception's class.
    KEYWORDS = RUBY_VERSION >= "4.0" ? %i[cause].freeze : [].freeze
    private_constant :KEYWORDS

    # Raises in the thread; see Ruby's documentation.
    def raise(*arguments, **keywords)
      return super unless equal?(Thread.current) && Fiber.scheduler.is_a?(Scheduler)

      options = keywords.except(*KEYWORDS)
      arguments << options unless options.empty?
      # What Ruby makes of no arguments, unlike Kernel#raise.
      arguments = [RuntimeError, ""] if arguments.empty?
      exception = Native.raise_here(arguments)
      begin
        super(exception, **keywords.slice(*KEYWORDS))
      ensure
        Native.raised_here(exception)
      end
    end
  end
  private_constant :ThreadRaise

  Patches.add { Thread.prepend(ThreadRaise) }
end
