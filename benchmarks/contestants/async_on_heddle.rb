# frozen_string_literal: true

require_relative "contestant"
require_relative "heddle"

# Async's tasks on a Heddle scheduler, which `default!` makes: its `Fiber.schedule` starts a task.
class AsyncOnHeddleContestant < Contestant
  def initialize(name, title, backend)
    super(name, title)
    @backend = backend
  end

  def prepare
    $LOAD_PATH.unshift(HeddleContestant.library)
    require "heddle/async"
    Heddle::Async.default!(backend: @backend)
  end

  def version = "Async #{Async::VERSION} on Heddle #{Heddle::VERSION}, #{@backend}"

  # The reactor makes itself the thread's scheduler. As Async's, it cancels tasks where it is closed.
  def run
    reactor = Async::Reactor.new
    yield
    reactor.run
    Fiber.set_scheduler(nil)
  end
end
