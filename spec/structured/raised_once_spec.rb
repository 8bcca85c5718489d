# frozen_string_literal: true

require "heddle/testing"

# A child may fail while its parent is about to await it, so that the error reaches the parent in two ways.
RSpec.describe "An error of a fiber" do
  error = Class.new(StandardError)
  folder = File.expand_path("../../lib/heddle/structured", __dir__)
  waits = %w[scope task_wait children].map { |name| File.join(folder, "#{name}.rb") }
  failing = -> { Heddle.spin { raise error } }
  # While it is masked, the error is not raised where the parent is preempted, as in some C functions.
  masked = ->(&block) { Thread.handle_interrupt(error => :never, &block) }

  {
    "Heddle.await" => -> { Heddle.await(failing.call) },
    "Heddle.await, masked" => -> { masked.call { Heddle.await(failing.call) } },
    "Heddle.await_all, masked" => -> { masked.call { Heddle.await_all(Heddle.spin { nil }, failing.call) } },
    "Heddle.race" => -> { Heddle.race(-> { raise error }, -> { sleep }) },
    "Heddle.map" => -> { Heddle.map([error]) { |given| raise given if given } },
    "Heddle.run" => -> { Heddle.run { failing.call && sleep } },
    "Barrier#await_all" => -> { Heddle::Barrier.new.tap { |barrier| barrier.spin { raise error } }.await_all }
  }.each do |name, wait|
    it "is raised once by #{name}, wherever the parent is preempted" do
      options = { strategy: :exhaustive, preemptions: 1, runs: 10_000, paths: waits, backend: :poll }
      exploration = Heddle::Testing.explore(**options) do
        raised = [wait, -> { 2.times { Heddle.snooze } }].count do |part|
          part.call
          false
        rescue error
          true
        end
        raise "it was raised #{raised} times" unless raised == 1
      end

      expect(exploration.complete).to be(true)
    end
  end
end
