# frozen_string_literal: true

RSpec.describe "An IO whose closing fiber is abandoned", :regression do
  # Neither the fiber's end nor its abandonment closes the IO: its `close` waits for ever.
  it "can be read by other fibers" do
    output, = run_ruby(<<~RUBY)
      require "heddle"
      STARTED = Queue.new
      # Heddle's patch of the method comes before this one, as the first scheduler installs it.
      IO.prepend(Module.new do
        def close
          STARTED.push(true)
          # A fiber that computes cannot be killed.
          loop { nil }
        rescue Exception
          retry
        end
      end)
      reader, writer = IO.pipe
      scheduler = Heddle::Scheduler.new(grace: 0.01, preempt: :all)
      Fiber.set_scheduler(scheduler)
      Fiber.schedule do
        closer = Heddle.spin { reader.close }
        STARTED.pop
        Heddle.stop(closer)
        Heddle.await(closer)
        writer.write("text")
        puts reader.readpartial(10)
      rescue Exception => e
        puts e.message
      end
    RUBY

    expect(output).to eq "text\n"
  end
end
