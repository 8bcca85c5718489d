# frozen_string_literal: true

desc "Check the Rust code's formatting"
task :fmt do
  sh "cargo", "fmt", "--all", "--check"
  # rustfmt leaves comments alone. A row of a table cannot be broken.
  long = FileList["ext/**/*.rs"].exclude("**/target/**").flat_map do |file|
    comments = File.foreach(file, chomp: true).with_index(1).select { |line, _| line[%r{\A\s*//.? (?!\|)}] }
    comments.filter_map { |line, number| "#{file}:#{number}" if line.size > 120 }
  end
  abort "These comments are longer than 120 characters: #{long.join(" ")}" if long.any?
end

# The compiler's own lints that fail `rake clippy`; Cargo.toml has Clippy's. Both are lists, since each version of the
# tools has new lints. They do not fail other builds: users compile the gem with newer compilers.
denied = %w[
  dead_code missing_docs unsafe_op_in_unsafe_fn unused_imports unused_must_use unused_mut unused_unsafe unused_variables
].flat_map { |lint| ["--deny", lint] }

# Patterns that drop an error without a word, for which Clippy has no lint. The error of a Ruby call may be a SIGTERM:
# ext/heddle/src/ruby/outcome.rs says what to write instead. A variable whose value is not used may only be a guard, and
# what is dropped only one of the variables and values below. A pattern names an error that a matched reference leaves
# where it is `_kept`. outcome.rs itself is where errors are dropped.
GUARDS = %w[announced blocked done finish hook mask].freeze
DROPPED_VARIABLES = %w[all ended hook reactor sent slot state ticker what].freeze
DROPPED_VALUES = ["HookGuard::new", "raised.deferred", "self.records.remove", "self.descriptors.remove"].freeze
DROPPED_ERROR = /
  \blet\ (mut\ )?Ok\( | \bErr\((?!_kept\))(_\w*|\.\.)\) | \.err\(\); | \bmap_err\((\|_|drop\)) |
  \blet\ _(?!(#{GUARDS.join("|")})\b)\w+\b | \bdrop\((?!(#{DROPPED_VARIABLES.join("|")})\))\w+\) |
  \bdrop\((?!(#{DROPPED_VALUES.map { |value| Regexp.escape(value) }.join("|")})\()[^()]+\(
/x

# The functions of ext/heddle/src/ruby/ that any thread may call, and that which makes a proof. Every other one takes a
# proof that its thread holds the GVL: see ext/heddle/src/ruby/gvl.rs. A method's proof is its receiver.
WITHOUT_GVL = %w[
  constant::new fork::generation fork::watch gvl::assume gvl::new hidden_variable::new postponed_job::trigger
  postponed_job::trigger_elsewhere thread::may_migrate thread::native_id value::new value::same
].freeze
PROOFS = /Ruby\b|Value\b|HoldsGvl|Collecting|Marker|ExceptionClass|Error\b|Obj<|\bR[A-Z]\w+|\bself\b/
FUNCTION = /^ *pub(?:\(super\))? (?:const |unsafe )?fn (?<name>\w+)(?:<[^(]*>)?\((?<parameters>.*?)\) (?:->|\{|where)/m

# The scheduler's state tells the time by `Clock::now`, which a test may command. These measure the real time.
STATE = FileList["ext/heddle/src/scheduler/{state/*,end_request,pending_raises}.rs"]
        .exclude("**/accounts.rs", "**/clock.rs", "**/counters.rs", "**/observers.rs")

desc "Lint the Rust code"
task clippy: :imports do
  lacking = FileList["ext/heddle/src/ruby/*.rs"].flat_map do |file|
    found = File.read(file).scan(FUNCTION).filter_map { |name, parameters| name unless parameters[PROOFS] }
    found.map { |name| "#{File.basename(file, ".rs")}::#{name}" } - WITHOUT_GVL
  end
  abort "These functions take no proof of the GVL, see ext/heddle/src/ruby/gvl.rs: #{lacking}" if lacking.any?

  real = STATE.flat_map { |file| File.foreach(file).grep(/Instant::now|\.elapsed\(/).map { |line| "#{file}: #{line}" } }
  abort "These lines ask the real clock instead of Clock::now:\n#{real.join}" if real.any?

  dropped = FileList["ext/heddle/src/**/*.rs"].exclude("**/ruby/outcome.rs").flat_map do |file|
    File.foreach(file).with_index(1).filter_map { |line, number| "#{file}:#{number}: #{line}" if line[DROPPED_ERROR] }
  end
  abort "These lines may drop an interrupt, see ext/heddle/src/ruby/outcome.rs:\n#{dropped.join}" if dropped.any?

  sh Build::CARGO_ENV, "cargo", "clippy", "--workspace", "--all-targets", "--", *denied
end

desc "Explore every interleaving of waker, mailbox, worker pool and next tick (loom; ext/core/src/threads/models.rs)"
task :models do
  environment = { "RUSTFLAGS" => "--cfg heddle_models", "CARGO_TARGET_DIR" => "target/models" }
  sh environment, "cargo", "test", "--release", "--package", "heddle-core", "--lib", "--", "models::"
end

desc "Run the tests of the crate that needs no Ruby"
task :cargo_test do
  sh "cargo", "test", "--package", "heddle-core"
end
