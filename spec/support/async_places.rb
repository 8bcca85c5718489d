# frozen_string_literal: true

# Where a program with tasks of Async runs: first lines of the program, which define `here { }`.
module AsyncPlaces
  ALL = {
    "Async's own scheduler" => <<~RUBY,
      def here = Async { |task| yield task }
    RUBY
    "Heddle.run" => <<~RUBY,
      require "heddle/async"
      def here = Heddle.run { Async { |task| yield task } }
    RUBY
    "Heddle.run(preempt: :all)" => <<~RUBY,
      require "heddle/async"
      def here = Heddle.run(preempt: :all) { Async { |task| yield task } }
    RUBY
    "Async { } after default!" => <<~RUBY
      require "heddle/async"
      Heddle::Async.default!(preempt: :all)
      def here = Async { |task| yield task }
    RUBY
  }.freeze
end
