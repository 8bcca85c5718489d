# frozen_string_literal: true

# Each example has a process of its own: Ruby behaves differently from the first Ractor until the process ends.
RSpec.describe "Heddle::RactorPool" do
  if RUBY_VERSION < "4.0"
    it "raises an error that names the Ruby version it needs" do
      expect { Heddle::RactorPool.new }.to raise_error(NotImplementedError, /needs Ruby 4\.0/)
    end

    next
  end

  def with_ractors(source)
    output, _errors, status = run_ruby(<<~RUBY)
      require "heddle"
      Warning[:experimental] = false
      $stdout.sync = true
      #{source}
    RUBY
    expect(status).to be_success
    output
  end

  it "runs blocks in Ractors, while fibers continue" do
    output = with_ractors(<<~RUBY)
      pool = Heddle::RactorPool.new(ractors: 2)
      Heddle.run do
        reader, writer = IO.pipe
        # Each job waits for a byte, and a fiber writes the bytes.
        jobs = Array.new(4) do |i|
          pool.go(i, reader.fileno) { |n, fd| IO.for_fd(fd, autoclose: false).sysread(1).size + n - 1 }
        end
        Heddle.spin { sleep 0.001; puts "fiber"; writer.write("1234") }
        p pool.await_all(*jobs)
      end
      p pool.await_all
      pool.close
    RUBY

    expect(output).to eq("fiber\n[0, 1, 2, 3]\n[]\n")
  end

  it "raises a block's error, and works on" do
    output = with_ractors(<<~RUBY)
      pool = Heddle::RactorPool.new(ractors: 1)
      begin
        Heddle.run { pool.go { Thread.current.report_on_exception = false; raise KeyError, "there" }.await }
      rescue KeyError => e
        puts e.message
      end
      p pool.go(2) { |n| n * 2 }.await
      pool.close
    RUBY

    expect(output).to eq("there\n4\n")
  end

  it "refuses a block that reads outer variables, as Ruby does" do
    output = with_ractors(<<~RUBY)
      pool = Heddle::RactorPool.new(ractors: 1)
      outside = [1]
      begin
        pool.go { outside }.await
      rescue ArgumentError => e
        puts e.message[/isolate/]
      end
      pool.close
    RUBY

    expect(output).to eq("isolate\n")
  end

  it "refuses an object that is no number, and a missing block" do
    expect { Heddle::RactorPool.new(ractors: 0) }.to raise_error(ArgumentError, /at least 1, not 0/)
    pool = Heddle::RactorPool.new(ractors: 1)
    expect { pool.go }.to raise_error(ArgumentError, "Heddle::RactorPool#go needs a block")
    pool.close
  end
end
