# frozen_string_literal: true

require "json"

# The table in docs/structured-concurrency.md, cell by cell. Rails' column is observed in a program of its own.
RSpec.describe "What work takes along from the fiber that starts it" do
  include Libraries

  document = File.read(File.expand_path("../../docs/structured-concurrency.md", __dir__), encoding: Encoding::UTF_8)
  table = document[/^## What work takes along$.*?(?:^## |\z)/m].scan(/^\| `?(.+?)`?#{" \\| (.+?)" * 4} \|$/)
  rows = table.drop(1).to_h { |place, *cells| [place.delete("`"), cells] }
  support = File.expand_path("../support/work_places.rb", __dir__)

  it "is in the table for every place of this test" do
    expect(rows.keys).to include(*WorkPlaces::PLACES.keys)
  end

  describe "in a program of its own" do
    before(:context) do
      @observed = JSON.parse(printed(<<~RUBY, library: "concurrent"))
        require "json"
        require "heddle/executor"
        require "heddle/offload"
        require "heddle/jobs/limited_queues"
        require #{support.dump}

        puts JSON.generate(WorkPlaces::PLACES.to_h { |place, _|
          carried = WorkPlaces.carrying { WorkPlaces.cell(place, WorkPlaces::CARRIED) }
          [place, [WorkPlaces.cell(place, WorkPlaces::STORAGE), carried, WorkPlaces.cell(place, WorkPlaces::LOCALS)]]
        })
      RUBY
    end

    WorkPlaces::PLACES.each_key do |place|
      it "is fiber storage as the table says: #{place}" do
        expect(@observed.fetch(place)[0]).to eq rows.fetch(place)[0]
      end

      it "is what Heddle.carry_context carries as the table says: #{place}" do
        expect(@observed.fetch(place)[1]).to eq rows.fetch(place)[2]
      end

      it "is Thread.current[] as the table says: #{place}" do
        expect(@observed.fetch(place)[2]).to eq rows.fetch(place)[3]
      end
    end
  end

  describe "by Heddle.carry_context" do
    def carrying(capture)
      subscription = Heddle.carry_context(&capture)
      Heddle.run { Heddle.await(Heddle.spin { :done }) }
    ensure
      subscription.unsubscribe
    end

    it "has what enters a context return nothing, and call its block" do
      expect(carrying(-> { ->(&work) { work.call && :lost } })).to eq :done
      expect(carrying(-> {})).to eq :done
      expect { carrying(-> { 5 }) }.to raise_error(TypeError, /must return nil, or what has `call`.*not 5/)
      expect { carrying(-> { -> {} }) }.to raise_error(RuntimeError, /must call its block/)
      expect { Heddle.carry_context }.to raise_error(ArgumentError, /needs a block/)
    end

    it "keeps the program's block in reports of fibers" do
      subscription = Heddle.carry_context { ->(&work) { work.call } }
      block = -> { sleep }
      blocks = Heddle.run do
        fiber = Fiber.schedule(&block)
        Heddle.const_get(:Snapshots).take.flat_map(&:fibers).map(&:program_block).tap { fiber.kill }
      end

      expect(blocks).to include block
    ensure
      subscription.unsubscribe
    end
  end

  describe "in Rails" do
    before(:context) do
      @observed = JSON.parse(printed(<<~RUBY, library: "rails"))
        require "json"
        require "action_controller/railtie"
        require "tmpdir"
        require "heddle/rails"
        require "heddle/offload"
        require "heddle/jobs/limited_queues"
        require #{support.dump}

        class Current < ActiveSupport::CurrentAttributes
          attribute :user
        end

        class Application < Rails::Application
          config.root = Dir.mktmpdir
          config.eager_load = false
          config.logger = Logger.new(nil)
          config.secret_key_base = "x" * 40
        end
        Application.initialize!

        # Each caller is a request.
        module WorkPlaces
          singleton_class.prepend(Module.new do
            def from(place, &work) = super(place) { Application.executor.wrap(&work) }
          end)
        end
        kind = WorkPlaces::Kind.new(read: -> { Current.user }, write: ->(value) { Current.user = value })
        puts JSON.generate(WorkPlaces::PLACES.to_h { |place, _| [place, WorkPlaces.cell(place, kind)] })
      RUBY
    end

    WorkPlaces::PLACES.each_key do |place|
      it "is CurrentAttributes as the table says: #{place}" do
        expect(@observed.fetch(place)).to eq rows.fetch(place)[1]
      end
    end
  end
end
