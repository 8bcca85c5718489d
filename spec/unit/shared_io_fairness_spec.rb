# frozen_string_literal: true

RSpec.describe "Fibers that write to the same IO" do
  # Ruby locks an IO while one fiber writes to it, and asks the scheduler in the middle of that.
  it "have their turns, although none of them ever has to wait" do
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

    expect(order.slice_when { |one, other| one != other }.count).to be > 10
  end
end
