# frozen_string_literal: true

# The surroundings in which each test is run.
module Around
  # @param plan [Hash] the child's
  # @return [Proc] a Proc that gets the test as its block
  def self.for(plan)
    case plan[:around]
    when :plain then ->(&test) { test.call }
    when :fiber then ->(&test) { Fiber.new(&test).resume }
    when :heddle then heddle(plan)
    end
  end

  def self.heddle(plan)
    companions = CompanionFibers.new if plan[:companions]
    lambda do |&test|
      Heddle.run(**plan[:options]) { companions ? companions.around(&test) : test.call }
    end
  end
  private_class_method :heddle
end
