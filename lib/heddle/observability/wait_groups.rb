# frozen_string_literal: true

module Heddle
  # Puts waits for the same thing together: `36 fibers wait for …`.
  module WaitGroups
    # What differs among fibers that wait for the same thing: how much of a time limit is left, and which fibers use the
    # thing.
    REST = /, \d+\.\d s left\z/
    DETAILS = / \(.*\)/
    # The number of a fiber that is waited for, before its name.
    NUMBER = /\bfiber \d+ (?=")/
    private_constant :REST, :DETAILS, :NUMBER

    # @param entries [Array<Snapshots::Entry>]
    # @param description [WaitDescription]
    # @return [Array<Hash{Symbol => String, Integer, Float}>] the largest group first: `waiting_for`, the text of the
    #   fiber that has waited longest; `count`; and `longest`, in seconds. Fibers that wait for nothing are left out
    def self.of(entries, description)
      texts = entries.filter_map { |entry| (text = description.of(entry)) && [entry, text.sub(REST, "")] }
      groups = texts.group_by { |_, text| text.gsub(DETAILS, "").gsub(NUMBER, "") }.values
      groups.map { |group| group(group) }.sort_by { |group| [-group[:count], -group[:longest]] }
    end

    def self.group(group)
      longest, text = group.max_by { |entry, _| entry.seconds }
      { waiting_for: text, count: group.size, longest: longest.seconds }
    end
    private_class_method :group
  end
  private_constant :WaitGroups
end
