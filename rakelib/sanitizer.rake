# frozen_string_literal: true

# Runs specs and the stress program with an extension that is built with AddressSanitizer. docs/internals/testing.md
# says how that works in a Ruby that is built without it.
class AddressSanitizer
  include Rake::FileUtilsExt

  TARGET = "x86_64-unknown-linux-gnu"
  BACKENDS = %w[io_uring poll].freeze
  COPIED = %w[lib spec verification/stress examples .rspec].freeze
  # An object that can be linked into an executable only.
  PREINIT = "asan_preinit.cpp.o"

  # Checks the heap and globals, not stacks. A fiber may be collected without being unwound; then the red zones of its
  # frames would stay on the stack that the next fiber gets.
  RUSTFLAGS = "-Zsanitizer=address -Cdebuginfo=1 -Cllvm-args=-asan-stack=0"
  COPY = CopiedBuild.new("asan", flags: RUSTFLAGS, files: COPIED, target: TARGET)
  REPORTS = File.join(COPY.folder, "report")
  RUNTIME = File.join(COPY.folder, "runtime.so")

  # Ruby frees little when it exits, detects stack overflows by SIGSEGV, and needs the threads' signal stacks itself.
  OPTIONS = "detect_leaks=0:handle_segv=0:handle_sigbus=0:use_sigaltstack=0:log_path=#{REPORTS}".freeze

  # Other reports are warnings about fibers' stacks, which the runtime does not know.
  FAULT = /ERROR: AddressSanitizer/

  SPECS = %w[
    spec/io/closing spec/io/buffer_spec.rb spec/io/file_spec.rb spec/io/interrupted_transfer_spec.rb
    spec/io/net_http_spec.rb spec/io/nonblock_spec.rb spec/io/pipe_spec.rb spec/io/select_spec.rb spec/io/tcp_spec.rb
    spec/io/tls_spec.rb spec/io/udp_spec.rb spec/io/unix_socket_spec.rb spec/hooks spec/preemption
    spec/scheduler/fork spec/scheduler/memory spec/slow/compaction_spec.rb
  ].freeze

  def run
    COPY.make
    make_runtime
    failed = Specs.failing(BACKENDS) do |backend, output|
      specs_pass?(backend, output) & stress_passes?(backend, output)
    end
    reports = Dir["#{REPORTS}*"].map { |report| File.read(report) }.grep(FAULT)
    puts reports
    abort "AddressSanitizer found #{reports.size} faults" if reports.any?
    abort "Specs or stress failed with #{failed.join(" and ")}, without a report of AddressSanitizer" if failed.any?
  end

  private

  # The toolchain contains the runtime only as an archive for executables.
  def make_runtime
    sysroot = IO.popen(%w[rustc +nightly --print sysroot], &:read).chomp
    archive = "#{COPY.folder}/asan.a"
    cp Dir["#{sysroot}/lib/rustlib/#{TARGET}/lib/librustc*_rt.asan.a"].fetch(0), archive
    sh "ar", "d", archive, PREINIT
    whole = ["-Wl,--whole-archive", archive, "-Wl,--no-whole-archive"]
    sh "cc", "-shared", "-o", RUNTIME, *whole, "-lpthread", "-ldl", "-lm"
  end

  def specs_pass?(backend, output)
    specs = ENV.fetch("SPEC", "").split
    specs = SPECS if specs.empty?
    passes?(backend, output, Gem.bin_path("rspec-core", "rspec"), *specs)
  end

  def stress_passes?(backend, output)
    passes?(backend, output, "verification/stress/preemption.rb", "SECONDS" => ENV.fetch("SECONDS", "20"))
  end

  def passes?(backend, output, *, **choice)
    environment = { "HEDDLE_BACKEND" => backend, "LD_PRELOAD" => RUNTIME, "ASAN_OPTIONS" => OPTIONS, **choice }
    COPY.passes?(environment, *, output:)
  end
end

desc "Run specs and stress with AddressSanitizer, which needs a nightly Rust (SPEC='spec/a_spec.rb …' SECONDS=20)"
task(:asan) { AddressSanitizer.new.run }
