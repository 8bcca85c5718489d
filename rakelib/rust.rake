# frozen_string_literal: true

desc "Check the Rust code's formatting"
task :fmt do
  sh "cargo", "fmt", "--all", "--check"
end

desc "Lint the Rust code; warnings are errors"
task :clippy do
  sh Build::CARGO_ENV, "cargo", "clippy", "--workspace", "--all-targets", "--", "-D", "warnings"
end

desc "Explore every interleaving of waker, mailbox and worker pool with loom (ext/core/src/models.rs)"
task :models do
  environment = { "RUSTFLAGS" => "--cfg heddle_models", "CARGO_TARGET_DIR" => "target/models" }
  sh environment, "cargo", "test", "--release", "--package", "heddle-core", "--lib", "--", "models::"
end

desc "Run the tests of the crate that needs no Ruby"
task :cargo_test do
  sh "cargo", "test", "--package", "heddle-core"
end
