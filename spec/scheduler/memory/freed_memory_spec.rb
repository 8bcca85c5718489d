# frozen_string_literal: true

RSpec.describe "Memory that Ruby has freed", :regression do
  # glibc then overwrites what is freed, so that a later read finds no valid object or type.
  let(:environment) { { "GLIBC_TUNABLES" => "glibc.malloc.perturb=255" } }

  # Each thread's scheduler hands Ruby a block, to find the thread's pending interrupts.
  it "isn't read when Ruby collects the blocks of threads' schedulers" do
    output = printed(<<~RUBY)
      require "heddle"
      20.times do
        Thread.new { Heddle.run { sleep(a_moment) } }.join
        GC.start
      end
      puts "collected"
    RUBY
    expect(output).to eq "collected\n"
  end
end
