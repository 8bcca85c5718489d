# frozen_string_literal: true

RSpec.describe "Fibers that write to the same IO" do
  # Ruby locks an IO while one fiber writes to it, and calls the scheduler while it holds the lock.
  it "all run, although none of them ever has to wait" do
    order = []
    File.open(File::NULL, "w") do |file|
      file.sync = true
      Heddle.run do
        %i[one other].each do |name|
          Fiber.schedule do
            1000.times do
              file.puts("line")
              order << name
            end
          end
        end
      end
    end

    expect(order.size).to eq(2000)
    expect(order.slice_when { |one, other| one != other }.count).to be > 10
  end

  it "all run, instead of two of them alternating" do
    order = []
    IO.pipe do |reader, writer|
      drain = Thread.new { reader.read }
      writer.sync = true
      Heddle.run do
        busy = %i[one other].map do |name|
          Heddle.spin do
            loop do
              writer.puts("line")
              order << name
            end
          end
        end
        Heddle.snooze
        writer.puts("third")
        order << :third
        busy.each { |fiber| Heddle.stop(fiber) }
      end
      writer.close
      drain.join
    end

    expect(order).to include(:one, :other, :third)
  end
end
