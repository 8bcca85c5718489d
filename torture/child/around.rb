# frozen_string_literal: true

# What each test is run in.
module Around
  # @param plan [Hash] the child's
  # @return [Proc] that takes the test as its block
  def self.for(plan)
    case plan[:around]
    when :plain then ->(&test) { test.call }
    when :fiber then ->(&test) { Fiber.new(&test).resume }
    when :heddle then heddle(plan)
    end
  end

  def self.heddle(plan)
    company = Company.new if plan[:company]
    lambda do |&test|
      Heddle.run(**plan[:options]) { company ? company.around(&test) : test.call }
    end
  end
  private_class_method :heddle
end
