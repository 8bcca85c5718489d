# frozen_string_literal: true

RSpec.describe "A fiber that was abandoned while it read" do
  { "Fiber#raise" => "raise('out')", "Fiber#kill" => "kill" }.each do |method, call|
    it "does not end the read of another fiber when #{method} gives it control again", :regression do
      output, = run_ruby(<<~RUBY)
        require "heddle"
        require "socket"
        reader, = UNIXSocket.pair
        other, writer = UNIXSocket.pair
        Heddle.run(grace: 0.01) do
          generator = nil
          is_over = false
          task = Heddle.spin do
            # It survives all that is to end it.
            generator = Fiber.new(blocking: false) do
              reader.read(1)
            rescue Exception
              retry unless is_over
            end
            generator.resume
          end
          sleep 0
          Heddle.stop(task)
          Heddle.await(task)
          # What the kernel did for it has ended, so that the next operation has the same token.
          sleep a_moment
          reading = Heddle.spin { other.read(1) }
          sleep 0
          is_over = true
          generator.#{call} rescue nil
          writer.write("y")
          $stdout.syswrite("\#{Heddle.await(reading)}\n")
          exit!
        end
      RUBY

      expect(output).to eq "y\n"
    end
  end
end
