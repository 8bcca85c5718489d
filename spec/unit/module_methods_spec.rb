# frozen_string_literal: true

# Ruby's own code, and libraries that load classes, call the methods of Module on every module that there is.
RSpec.describe "The modules of Heddle" do
  def modules
    name = Module.instance_method(:name)
    ObjectSpace.each_object(Module).select { |found| name.bind_call(found).to_s.start_with?("Heddle") }
  end

  it "leave Ruby's own methods of modules as they are" do
    redefined = modules.to_h do |found|
      names = found.singleton_methods(false) & Module.instance_methods
      # Ruby itself defines some for a Data.
      [found, names.select { |name| found.method(name).source_location }]
    end
    expect(redefined.reject { |_, names| names.empty? }).to be_empty
  end
end
