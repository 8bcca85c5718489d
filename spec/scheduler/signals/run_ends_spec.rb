# frozen_string_literal: true

RSpec.describe "Signals at the beginning and the end of Heddle.run" do
  # Writes an s when it begins to run Heddle.run again and again, and an r when a signal has ended that.
  program = <<~RUBY
    require "heddle"
    $stdout.sync = true
    loop do
      $stdout.write "s"
      loop { Heddle.run { nil } }
    rescue SignalException
      $stdout.write "r"
    end
  RUBY

  # Each comes at another point of a run, as the program does nothing else.
  %w[TERM INT].each do |signal|
    it "are all raised: SIG#{signal}", :regression do
      reader, writer = IO.pipe
      child = Process.spawn(RbConfig.ruby, "-I#{Processes::LIB}", "-e", program, out: writer)
      writer.close
      written = Array.new(300) do
        began = reader.read(1)
        sleep(rand / 300)
        Process.kill(signal, child)
        [began, reader.read(1)]
      end
      expect(written.tally).to eq %w[s r] => 300
    ensure
      Process.kill("KILL", child)
      Process.wait(child)
      reader.close
    end
  end
end
