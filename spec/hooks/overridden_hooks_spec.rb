# frozen_string_literal: true

# A hook treats some methods of Ruby in another way than most, and must see them behind a program's own hook.
RSpec.describe "A subclass of Heddle::Scheduler whose hooks call super" do
  subject(:scheduler) do
    Class.new(Heddle::Scheduler) do
      %i[io_read io_write kernel_sleep].each do |hook|
        define_method(hook) { |*arguments| tap { calls << hook } && super(*arguments) }
      end

      def calls = @calls ||= []
    end.new
  end

  def scheduled
    value = nil
    Thread.new do
      Fiber.set_scheduler(scheduler)
      Fiber.schedule { value = yield }
    end.join
    value
  end

  it "waits in IO#sysread", :regression do
    read = IO.pipe do |reader, writer|
      scheduled do
        Fiber.schedule { sleep(0) && writer.write("late") }
        reader.sysread(10)
      end
    end
    expect([read, scheduler.calls.uniq]).to match ["late", include(:io_read)]
  end

  it "ends no sleep by an earlier wake-up", :regression do
    woken = scheduled do
      scheduler.unblock(:other, Fiber.current)
      started = Clock.now
      sleep(0.02)
      [Clock.now - started >= 0.02, scheduler.calls]
    end
    expect(woken).to eq [true, %i[kernel_sleep]]
  end

  it "doesn't wait in IO#read_nonblock" do
    answer = IO.pipe { |reader, _writer| scheduled { reader.read_nonblock(1, exception: false) } }
    expect([answer, scheduler.calls]).to eq [:wait_readable, %i[io_read]]
  end
end
