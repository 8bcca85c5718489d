# frozen_string_literal: true

# Linux's system calls that Ruby has no method for.
module SystemCalls
  IO_URING_SETUP = 425
  PRCTL = { "x86_64" => 157, "aarch64" => 167 }.freeze
  PR_SET_CHILD_SUBREAPER = 36
  NO_PARAMETERS = 0

  module_function

  # Asks the kernel instead of Heddle, so that a bug in Heddle does not look like a kernel without io_uring. A kernel
  # with io_uring fails with EFAULT, as the parameters are missing.
  #
  # @return [String, nil] why there is no io_uring here
  def io_uring_refusal
    return "#{RUBY_PLATFORM} has no io_uring" unless RUBY_PLATFORM.include?("linux")

    without_warnings { syscall(IO_URING_SETUP, 1, NO_PARAMETERS) }
  rescue Errno::EFAULT
    nil
  rescue SystemCallError => e
    e.message
  end

  # Makes this process the parent of its descendants whose own parent ends.
  #
  # @return [Boolean] whether the system can do so
  def adopts_orphans?
    return false unless RUBY_PLATFORM.include?("linux") && (prctl = PRCTL[RbConfig::CONFIG["host_cpu"]])

    without_warnings { syscall(prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }
    true
  end

  def without_warnings
    verbose = $VERBOSE
    $VERBOSE = nil
    yield
  ensure
    $VERBOSE = verbose
  end
end
