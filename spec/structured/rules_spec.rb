# frozen_string_literal: true

# Each row of the table 'The rules' in docs/structured-concurrency.md. A program notes what happens.
RSpec.describe "The rules of the tree of fibers" do
  guide = File.read(File.expand_path("../../docs/structured-concurrency.md", __dir__))
  rows = guide[/## The rules.*?\n\n```/m].scan(/^\| (.+?) \| (.+?) \|$/).drop(1)

  # A child that lasts until it is stopped.
  let(:endless) do
    lambda do |notes, **options|
      Heddle.spin(**options) do
        sleep
      ensure
        sleep 1
        notes << :stopped
      end
    end
  end
  # A child that fails after a second.
  let(:failing) { -> { Heddle.spin { sleep(1) && raise(KeyError, "mine") } } }

  def noted(notes)
    yield
  rescue KeyError, Heddle::TimeoutError, FiberError => e
    notes << e.class
  end

  programs = {
    "a block returns" => [%i[child value], lambda { |notes|
      notes << Heddle.run { Heddle.spin { sleep(1) && (notes << :child) } && :value }
    }],
    "its children have ended" => [%i[child stopped], lambda { |notes|
      Heddle.run { endless.call(notes, background: true) && Heddle.spin { sleep(1) && (notes << :child) } }
    }],
    "a block raises" => [[:stopped, KeyError], lambda { |notes|
      Heddle.run { endless.call(notes) && sleep(1) && raise(KeyError) }
    }],
    "a block is stopped" => [%i[stopped ended], lambda { |notes|
      task = Heddle.spin { endless.call(notes) && sleep }
      sleep 1
      task.stop.await
      notes << :ended
    }],
    "a time limit elapses in a block" => [[:stopped, Heddle::TimeoutError], lambda { |notes|
      Heddle.cancel_after(1) { Heddle.run { endless.call(notes) } }
    }],
    "a child fails that a fiber awaits" => [[KeyError, :once], lambda { |notes|
      noted(notes) { failing.call.await }
      sleep 1
      notes << :once
    }],
    "a child fails that no fiber awaits" => [[:stopped, KeyError], lambda { |notes|
      Heddle.run { endless.call(notes) && failing.call && sleep }
    }],
    "its parent does not wait" => [[:returns, KeyError], lambda { |notes|
      Heddle.run { failing.call && (notes << :returns) }
    }],
    "`await_all` raises" => [[:stopped, KeyError, true], lambda { |notes|
      stranger = Heddle.spin(background: true) { sleep }
      Heddle.spin { noted(notes) { Heddle.await_all(stranger, endless.call(notes), failing.call) } }.await
      notes << stranger.alive?
    }],
    "a fiber awaits one that waits for it at its end" => [[FiberError], lambda { |notes|
      parent = Heddle.spin { Heddle.spin { parent.await } }
      noted(notes) { parent.await }
    }]
  }

  it "are those of the guide" do
    expect(rows.map(&:first)).to eq(programs.keys)
  end

  rows.each do |condition, result|
    it "say that when #{condition}, then #{result}" do
      expected, program = programs.fetch(condition)
      notes = []
      virtually { noted(notes) { instance_exec(notes, &program) } }

      expect(notes).to eq(expected)
    end
  end
end
