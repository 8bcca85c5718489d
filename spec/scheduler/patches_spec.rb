# frozen_string_literal: true

RSpec.describe "Ruby's own methods" do
  let(:preamble) { <<~RUBY }
    # What Heddle uses of the standard library.
    %w[etc pty rbconfig socket timeout].each { |library| require library }

    # Every module that is not Heddle's, with its mark in names of methods.
    def places
      modules = ObjectSpace.each_object(Module).reject(&:singleton_class?)
      modules.select! { |mod| mod.name && !mod.name.start_with?("Heddle") }
      modules.flat_map { |mod| [[mod, "\#{mod}#"], [mod.singleton_class, "\#{mod}."]] }
    end

    def names(place) = (place.instance_methods(false) + place.private_instance_methods(false)).sort

    # Those of Heddle's that a program finds where it looks for the module's own.
    def changed
      places.flat_map do |place, mark|
        own = place.ancestors.take(place.ancestors.index(place) + 1)
        methods = own.flat_map { |mod| names(mod) }.uniq.map { |name| place.instance_method(name) }
        methods.select! { |method| method.source_location&.first.to_s.include?("/lib/heddle/") }
        methods.filter_map { |method| mark + method.name.to_s if own.include?(method.owner) }
      end
    end
  RUBY
  let(:by_a_scheduler) { printed(<<~RUBY).lines(chomp: true) }
    require "heddle"
    Heddle.run { nil }
    puts changed
  RUBY
  let(:table) { File.read("docs/internals/coverage.md")[/^\| method \| which Ruby.*?\n\n/m].lines.drop(2) }

  it "are not changed by loading Heddle" do
    expect(printed(<<~RUBY)).to eq ""
      before = places.to_h { |place, mark| [mark, [place, place.ancestors, names(place)]] }
      require "heddle"
      puts before.reject { |_, (place, *known)| [place.ancestors, names(place)] == known }.keys, changed
    RUBY
  end

  it "are named in the table of docs/internals/coverage.md if a scheduler changes them" do
    kept = /_without_heddle\z/
    expect(by_a_scheduler.grep_v(kept).reject { |name| table.join.include?("`#{name}`") }).to eq []
  end

  it "are changed by a scheduler if the table of docs/internals/coverage.md says so" do
    rows = table.map { |row| row.split("|").map(&:strip) }
    rows.select! { |_, _, rubies| rubies == "all" || rubies&.include?(RUBY_VERSION[/\d+\.\d+/]) }
    promised = rows.flat_map { |_, methods| methods.to_s.scan(/`(\w[\w:]*[#.]\w+)`/).flatten }
    expect([promised - by_a_scheduler, promised.empty?]).to eq [[], false]
  end
end
