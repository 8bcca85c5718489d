# frozen_string_literal: true

desc "Check the Rust code's formatting"
task :fmt do
  sh "cargo", "fmt", "--all", "--check"
end

desc "Lint the Rust code; warnings are errors"
task :clippy do
  sh Build::CARGO_ENV, "cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"
end

desc "Run the tests of the crates that need no Ruby"
task :cargo_test do
  sh "cargo", "test", "--package", "heddle-core"
end
