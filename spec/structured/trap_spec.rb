# frozen_string_literal: true

RSpec.describe "Heddle.trap" do
  around do |example|
    before = trap("HUP") { nil }
    example.run
  ensure
    trap("HUP", before)
  end

  def handler = trap("HUP", "IGNORE").tap { |found| trap("HUP", found) }

  # Sets handlers a, b and c in turn, and ends their fibers in the order given. Returns which handler is called after
  # each end.
  def called_after_ends(order)
    called = Thread::Queue.new
    trap("HUP") { called << :program }
    Heddle.run do
      fibers = %i[a b c].to_h { |name| [name, Heddle.trap("HUP") { called << name }] }
      order.map do |name|
        Heddle.stop(fibers.fetch(name))
        Heddle.await(fibers.fetch(name))
        Process.kill(:HUP, Process.pid)
        called.pop
      end
    end
  end

  it "restores, however the lifetimes of several for a signal overlap, the newest that is left" do
    orders = %i[a b c].permutation.to_h { |order| [order.join, called_after_ends(order)] }

    expect(orders).to eq(
      "abc" => %i[c c program], "acb" => %i[c b program], "bac" => %i[c c program],
      "bca" => %i[c a program], "cab" => %i[b b program], "cba" => %i[b a program]
    )
  end

  it "leaves neither its handler nor its fiber when the caller's time limit elapses in it, and restores it once" do
    before = handler
    theirs = ->(_) {}
    restored = Heddle.run do
      fibers = Heddle.fibers.size
      Heddle.move_on_after(0) { Heddle.trap("HUP") { nil } && sleep }
      found = handler
      trap("HUP", theirs)
      Heddle.snooze until Heddle.fibers.size == fibers
      found
    end

    expect(restored).to be before
    expect(handler).to be theirs
  end

  it "leaves a handler in place that the program has set since" do
    theirs = ->(_) {}
    Heddle.run do
      Heddle.trap("HUP") { nil }
      trap("HUP", theirs)
    end

    expect(handler).to be theirs
  end
end
