# frozen_string_literal: true

require "etc"
require "rbconfig"

RSpec.describe "Heddle::Scheduler#backend" do
  # Numbers of system calls that Ruby has no names for. That of io_uring_setup is the same everywhere.
  io_uring_setup = 425
  prctl, seccomp = { "x86_64" => [157, 317], "aarch64" => [167, 277] }[Etc.uname[:machine]]
  filters = RUBY_PLATFORM.include?("linux") && prctl

  # Prints the backend, and shows that it works.
  working = <<~RUBY
    def show(scheduler)
      Fiber.set_scheduler(scheduler)
      reader, writer = IO.pipe
      text = nil
      Fiber.schedule { text = reader.gets }
      Fiber.schedule { sleep(a_moment); writer.puts("works") }
      Fiber.set_scheduler(nil)
      puts scheduler.backend.inspect, text
    end
  RUBY

  # Makes io_uring_setup fail in this process until its end, as a container's filter does.
  refusal = <<~RUBY
    def refuse_io_uring(error)
      load, jump_if_equal, give = 0x20, 0x15, 0x06
      filter = [
        [load, 0, 0, 0],
        [jump_if_equal, 0, 1, #{io_uring_setup}],
        [give, 0, 0, 0x00050000 | error::Errno],
        [give, 0, 0, 0x7fff0000]
      ].map { |instruction| instruction.pack("SCCL") }
      program = [filter.size, filter.join].pack("Sx6P")
      # syscall takes no Strings with null bytes in them.
      address = [program].pack("P").unpack1("J")
      no_new_privileges, set_filter = 38, 1
      syscall(#{prctl}, no_new_privileges, 1, 0, 0, 0)
      syscall(#{seccomp}, set_filter, 0, address)
    end
  RUBY

  # Whether the kernel allows io_uring, asked without Heddle.
  allowed = lambda do
    parameters = "\0" * 120
    IO.for_fd(syscall(io_uring_setup, 1, [parameters].pack("P").unpack1("J"))).close
    true
  rescue NotImplementedError, SystemCallError
    false
  end

  before { skip "the kernel has no io_uring for us" if self.class.metadata[:uring] && !allowed.call }

  define_method(:backend_of) do |arguments, preparation: "", env: {}|
    env = { "HEDDLE_BACKEND" => nil }.merge(env)
    run_ruby(<<~RUBY, env:)
      #{refusal}
      #{preparation}
      require "heddle"
      #{working}
      begin
        show(Heddle::Scheduler.new(#{arguments}))
      rescue StandardError, NotImplementedError => e
        puts e.class, e.message
      end
    RUBY
  end

  it "is :poll when poll is requested, and works" do
    expect(backend_of("backend: :poll").first).to eq(":poll\nworks\n")
  end

  it "is the one of HEDDLE_BACKEND when none is requested" do
    expect(backend_of("", env: { "HEDDLE_BACKEND" => "poll" }).first).to eq(":poll\nworks\n")
  end

  it "is the one of HEDDLE_BACKEND even if another one is requested" do
    expect(backend_of("backend: :io_uring", env: { "HEDDLE_BACKEND" => "poll" }).first).to eq(":poll\nworks\n")
  end

  it "raises an error that names the accepted values when HEDDLE_BACKEND is unknown" do
    output, = backend_of("", env: { "HEDDLE_BACKEND" => "select" })

    expect(output).to match(/\AArgumentError\n.*HEDDLE_BACKEND/).and match(/auto.*io_uring.*poll/).and match(/select/)
  end

  it "is the same for all schedulers of this run" do
    backends = Array.new(2) { Heddle::Scheduler.new.backend }

    expect(backends).to eq(backend == "auto" ? [backends.first] * 2 : [backend.to_sym] * 2)
  end

  it "writes nothing to stderr" do
    _, errors, status = backend_of("backend: :auto")

    expect([errors, status.success?]).to eq(["", true])
  end

  describe "where the kernel has io_uring", uring: true do
    it "is :io_uring when io_uring is requested, and works" do
      expect(backend_of("backend: :io_uring").first).to eq(":io_uring\nworks\n")
    end

    it "is :io_uring when it is chosen automatically" do
      expect(backend_of("backend: :auto").first).to eq(":io_uring\nworks\n")
    end

    it "is :io_uring by default" do
      expect(backend_of("").first).to eq(":io_uring\nworks\n")
    end

    it "is chosen automatically again when HEDDLE_BACKEND says auto" do
      expect(backend_of("", env: { "HEDDLE_BACKEND" => "auto" }).first).to eq(":io_uring\nworks\n")
    end

    it "can differ between two threads of a process" do
      output, = run_ruby(<<~RUBY, env: { "HEDDLE_BACKEND" => nil })
        require "heddle"
        backends = %i[io_uring poll].map do |backend|
          Thread.new { Heddle.run(backend:) { sleep(a_moment) && Fiber.scheduler.backend } }
        end
        puts backends.map(&:value).inspect
      RUBY

      expect(output).to eq("[:io_uring, :poll]\n")
    end
  end

  describe "where the kernel refuses io_uring", if: filters do
    # Containers return EPERM. ENOMEM means too little lockable memory, ENOSYS an old kernel.
    { "EPERM" => /permitted/, "ENOMEM" => /memory|memlock/i, "ENOSYS" => /implemented/ }.each do |error, reason|
      it "is :poll when it is chosen automatically, and works (#{error})" do
        output, errors, = backend_of("backend: :auto", preparation: "refuse_io_uring(Errno::#{error})")

        expect([output, errors]).to eq([":poll\nworks\n", ""])
      end

      it "raises an error with the reason when io_uring is requested (#{error})" do
        output, = backend_of("backend: :io_uring", preparation: "refuse_io_uring(Errno::#{error})")

        expect(output).to match(/\A(?!:)\S+\n.*io_uring/m).and match(reason)
      end
    end

    it "raises an error with the reason when HEDDLE_BACKEND requests io_uring" do
      output, = backend_of("", preparation: "refuse_io_uring(Errno::EPERM)", env: { "HEDDLE_BACKEND" => "io_uring" })

      expect(output).to match(/\A(?!:)\S+\n.*io_uring/m).and match(/permitted/)
    end

    it "can be poll after io_uring was refused" do
      output, = backend_of(<<~RUBY.chomp, preparation: "refuse_io_uring(Errno::EPERM)")
        **begin
          Heddle::Scheduler.new(backend: :io_uring)
        rescue StandardError, NotImplementedError
          { backend: :poll }
        end
      RUBY

      expect(output).to eq(":poll\nworks\n")
    end
  end

  # ENOMEM has another cause, too: root has no such limit, and newer kernels don't use it.
  it "works under a small limit of lockable memory" do
    output, = backend_of("", preparation: "Process.setrlimit(:MEMLOCK, 0)")

    expect(output).to match(/\A:(io_uring|poll)\nworks\n\z/)
  end
end
