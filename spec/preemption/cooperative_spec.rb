# frozen_string_literal: true

require "fileutils"
require "heddle/testing"
require "shellwords"
require "tmpdir"

# Code of a library that relies on no switch between two waits.
RSpec.describe "A scheduler with cooperative code" do
  # Seconds of CPU time: many ticks come meanwhile.
  enough = 0.03

  around do |example|
    Dir.mktmpdir do |folder|
      @folder = File.realpath(folder)
      example.run
    end
  end

  # A module with the methods, in a file of a gem, or of any other folder.
  def library(code, folder: "gems/peer-1.2.0/lib")
    path = File.join(@folder, folder, "peer.rb")
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, "Module.new do\n  module_function\n#{code}\nend\n")
    eval(File.read(path), TOPLEVEL_BINDING, path) # rubocop:disable Security/Eval -- a new module for each example
  end

  computing = <<~RUBY
    def compute(seconds)
      clock = Process::CLOCK_PROCESS_CPUTIME_ID
      finish = Process.clock_gettime(clock) + seconds
      Integer.sqrt(2) until Process.clock_gettime(clock) > finish
    end

    # How often others have run while it computes.
    def compute_beside(counts, seconds)
      before = counts.last
      compute(seconds)
      counts.last - before
    end

    def call = yield
  RUBY

  # Calls the block beside a fiber that counts how often it runs. The block's own code may be preempted.
  def beside_counter(cooperative: ["peer"])
    Heddle.run(preempt: :all, cooperative:) do
      counts = [0]
      Heddle.spin(background: true) { loop { (counts[0] += 1) && Heddle.snooze } }
      Heddle.await(Heddle.spin { yield counts })
    end
  end

  it "lets no other fiber run while it computes" do
    peer = library(computing)

    expect(beside_counter { |counts| peer.compute_beside(counts, enough) }).to eq 0
  end

  { "by a name that ends with an asterisk" => ["pe*"], "by a folder" => :folder }.each do |how, cooperative|
    it "lets no other fiber run if it is named #{how}" do
      peer = library(computing)
      cooperative = [@folder] if cooperative == :folder

      expect(beside_counter(cooperative:) { |counts| peer.compute_beside(counts, enough) }).to eq 0
    end
  end

  it "lets no other fiber run if its folder is named by a symbolic link" do
    peer = library(computing)
    File.symlink(@folder, "#{@folder}.link")

    runs = beside_counter(cooperative: ["#{@folder}.link"]) { |counts| peer.compute_beside(counts, enough) }
    expect(runs).to eq 0
  ensure
    File.unlink("#{@folder}.link")
  end

  it "lets no other fiber run while it uses Ruby's own library" do
    peer = library(<<~RUBY)
      def split_beside(counts, text)
        before = counts.last
        Shellwords.split(text)
        counts.last - before
      end
    RUBY

    expect(beside_counter { |counts| peer.split_beside(counts, "a b " * 30_000) }).to eq 0
  end

  it "preempts the program's block that it calls" do
    peer = library(computing)
    turn = false
    Heddle.run(preempt: :all, cooperative: ["peer"]) do
      Heddle.spin { peer.call { nil until turn } }
      Heddle.spin { turn = true }
    end

    expect(turn).to be true
  end

  it "preempts code of another gem" do
    other = library("def wait(turns) = (nil until turns.any?)", folder: "gems/peerless-1.0/lib")
    turns = []
    Heddle.run(preempt: :all, cooperative: ["peer"]) do
      Heddle.spin { other.wait(turns) }
      Heddle.spin { turns << true }
    end

    expect(turns).to eq [true]
  end

  it "is not interrupted by a time limit before it waits or returns" do
    peer = library("#{computing}\n#{<<~RUBY}")
      def act(noted, seconds)
        Heddle.cancel_after(0.001) { compute(seconds) || (noted << :done) && sleep }
      end
    RUBY
    noted = []
    raised = Heddle.run(preempt: :all, cooperative: ["peer"]) do
      peer.act(noted, enough)
    rescue Heddle::TimeoutError => e
      e.class
    end

    expect([raised, noted]).to eq [Heddle::TimeoutError, [:done]]
  end

  it "has no points of an explored schedule" do
    peer = library(<<~RUBY)
      def add(totals)
        total = totals.last
        total += 1
        totals << total
      end
    RUBY
    lost = lambda do |cooperative|
      Heddle::Testing.explore(runs: 100, paths: [@folder], cooperative:) do
        totals = [0]
        Heddle.await_all(*Array.new(2) { Heddle.spin { peer.add(totals) } })
        raise "lost" unless totals.last == 2
      end.runs
    rescue Heddle::Testing::Failure => e
      e.cause.message
    end

    expect([lost.call([]), lost.call(["peer"])]).to eq ["lost", 100]
  end

  [nil, []].each do |none|
    it "is preempted with cooperative: #{none.inspect}" do
      peer = library("def wait(turns) = (nil until turns.any?)")
      turns = []
      Heddle.run(preempt: :all, cooperative: none) do
        Heddle.spin { peer.wait(turns) }
        Heddle.spin { turns << true }
      end

      expect(turns).to eq [true]
    end
  end

  [
    "async", :async, [:async], [""], ["*"], ["a/b"], ["lib/"], ["a*b"], ["a**"], ["."], ["/"], [nil], { a: 1 }
  ].each do |value|
    it "refuses cooperative: #{value.inspect}" do
      message = /\Acooperative: must be an Array of names of gems.*, not #{Regexp.escape(value.inspect)}\z/

      expect { Heddle::Scheduler.new(cooperative: value) }.to raise_error(ArgumentError, message)
    end
  end
end
