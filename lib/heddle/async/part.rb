# frozen_string_literal: true

module Heddle
  module Async
    # What the adapter relies on in Async. `Task#schedule` is private.
    PART = AdapterPart.new(
      "async", ::Async::VERSION,
      right_with: "2.46.0",
      without: "Async's tasks do not run on Heddle's schedulers",
      uses: [
        "Async::Task#completed!(_)", "Async::Task#cancelled!(_)", "Async::Task#failed!(_)", "Async::Task#finish!",
        "Async::Task#run", "Async::Task#reactor", "Async::Task#annotation", "Async::Task#current?",
        "Async::Task.current?", "Async::Task#cancel(_,cause:)", "Async::Cancel", "Async::Node#add_child(_)",
        "Async::Node#remove_child(_)", "Async::Node#children?", "Async::Node#traverse", "Async::Children#finished?",
        "Async::Children#adjust_transient_count(_)", "Async::Children#removed(_)", "Async::Timeout",
        "Async::Scheduler::ClosedError", "Async::Promise#cancel(_)"
      ],
      overrides: { "Async::Task" => Tasks, "Async::Reactor.singleton_class" => Reactors },
      only: %i[schedule annotate]
    )
    private_constant :PART
  end
end
