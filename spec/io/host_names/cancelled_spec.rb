# frozen_string_literal: true

require "heddle/testing"
require "socket"

# Ruby 3.3 connects by itself.
RSpec.describe "TCPSocket.new that is cancelled as it takes over its connection", if: RUBY_VERSION >= "3.4" do
  let(:native) { Heddle.const_get(:Native) }
  let(:server) { TCPServer.new("127.0.0.1", 0) }

  after { server.close }

  # Calls the block with the second IO of a connection's number, at the end of the call that makes it.
  def as_second_owner_is_made
    trace = TracePoint.new(:c_return) do |event|
      next unless event.method_id == :bind_call && event.return_value.is_a?(TCPSocket)

      trace.disable
      yield event.return_value
    end
    trace.enable(target_thread: Thread.current)
  end

  # Connects in a fiber that is sent an exception at that point, and may be preempted there. Returns that IO.
  def second_owner
    owner = nil
    native.explore_random(scheduler = Heddle::Scheduler.new(preempt: :all), 1)
    Fiber.set_scheduler(scheduler)
    Fiber.schedule do
      as_second_owner_is_made do |made|
        owner = made
        native.deliver(scheduler, Fiber.current, RuntimeError.new("cancelled"))
        native.pass_point(scheduler, false, false, true)
      end
      TCPSocket.new("localhost", server.local_address.ip_port).close
    rescue RuntimeError
      # It may come here, too.
    end
    Fiber.set_scheduler(nil)
    owner
  end

  it "leaves no IO behind that would close the number a second time" do
    owner = Thread.new { second_owner }.value
    closed = owner.closed?
    owner.autoclose = false unless closed

    expect(closed).to be true
  end
end
