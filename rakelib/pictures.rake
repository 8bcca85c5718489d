# frozen_string_literal: true

desc "Make the screenshots of the page for docs/, which needs Chromium and the gems of examples/slow"
task pictures: :compile do
  sh({ "PICTURES" => File.expand_path("../docs/images", __dir__) },
     RbConfig.ruby, "-S", "rspec", "spec/slow/symptoms_spec.rb")
end
