# frozen_string_literal: true

require_relative "lib/heddle/version"

Gem::Specification.new do |spec|
  spec.name = "heddle"
  spec.version = Heddle::VERSION
  spec.authors = ["Heddle contributors"]
  spec.license = "MIT"
  spec.summary = "A preemptive Fiber::Scheduler, written in Rust"
  spec.description = <<~TEXT
    Heddle runs ordinary Ruby programs on fibers: sockets, pipes, files, processes, DNS and timers wait on io_uring or
    epoll while other fibers run. A fiber that computes for too long is preempted. It is written in Rust.
  TEXT
  spec.homepage = "https://github.com/heddle-rb/heddle"
  spec.metadata = {
    "homepage_uri" => spec.homepage,
    "source_code_uri" => "#{spec.homepage}/tree/main",
    "bug_tracker_uri" => "#{spec.homepage}/issues",
    "changelog_uri" => "#{spec.homepage}/blob/main/CHANGELOG.md",
    "documentation_uri" => "#{spec.homepage}#readme",
    "cargo_crate_name" => "heddle",
    "rubygems_mfa_required" => "true"
  }

  spec.required_ruby_version = ">= 3.3"
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/heddle/extconf.rb"]

  # Listed without git, so that the gem can also be built from an unpacked archive. The gem contains the workspace's
  # Cargo.toml and Cargo.lock: the user's machine builds the extension with the versions of crates that were tested.
  sources = ["lib/**/*.rb", "lib/heddle/web/assets/**/*.*", "sig/**/*.{rbs,yaml}", "ext/**/*.{rs,rb,toml}"]
  documents = ["Cargo.toml", "Cargo.lock", "*.md", "LICENSE", ".yardopts", "docs/**/*.{md,svg,png,patch}"]
  spec.files = Dir[*sources, *documents, base: __dir__].grep_v(%r{\Aext/.*/(target|tests)/})
  spec.extra_rdoc_files = spec.files.grep(/\A(README|CHANGELOG|LICENSE)/)

  spec.add_dependency "rb_sys", "~> 0.9.130"
end
