# frozen_string_literal: true

Ecosystem.library "concurrent-ruby", requires: "concurrent",
                                     remark: "`ThreadLocalVar` is shared by fibers" do
  def wait(_client, seconds) = Concurrent::Promises.schedule(seconds) { :done }.value!

  def usable?(_client) = Concurrent::Promises.future(3) { |number| number + 4 }.value! == 7

  def works(_client)
    latch = Concurrent::CountDownLatch.new(2)
    2.times { Concurrent::Promises.future { latch.count_down } }
    event = Concurrent::Event.new
    Concurrent::ScheduledTask.execute(0.01) { event.set }
    map = Concurrent::Map.new
    zipped = Concurrent::Promises.zip(*Array.new(3) { |number| Concurrent::Promises.future { number * 2 } }).value!
    waited = [latch, event].map { |each| each.wait(Ecosystem::LIMIT) }
    [*waited, map.compute_if_absent(:a) { 1 }, zipped, Concurrent::Delay.new { 7 }.value]
  end
end
