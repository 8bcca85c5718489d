# frozen_string_literal: true

module Heddle
  class Web
    # Keeps reports for a second, so that ten open pages cost as much as one. Requests for a report that is being made
    # wait for it.
    #
    # Only texts are kept, no fibers: what a report tells of can be collected meanwhile.
    #
    # @api private
    class KeptAnswers
      # Seconds.
      AGE = 1
      # How many reports are kept. Pages whose filters differ ask for different ones.
      LIMIT = 16
      Entry = Struct.new(:lock, :made_at, :text)
      private_constant :AGE, :LIMIT, :Entry

      def initialize
        @entries = {}
        @lock = Mutex.new
      end

      # @param key [Object] what the report is about
      # @yieldreturn [String] the report, if there is none, or none that is new enough
      # @return [String]
      def fetch(key)
        entry = entry_of(key)
        entry.lock.synchronize do
          unless fresh?(entry)
            entry.text = yield
            entry.made_at = Context.now
          end
          entry.text
        end
      end

      private

      def entry_of(key)
        @lock.synchronize do
          @entries.select! { |_, entry| entry.made_at.nil? || fresh?(entry) }
          # The oldest: a Hash keeps the order.
          @entries.shift if @entries.size >= LIMIT && !@entries.key?(key)
          @entries[key] ||= Entry.new(Mutex.new)
        end
      end

      def fresh?(entry) = entry.made_at && Context.now - entry.made_at < AGE
    end
    private_constant :KeptAnswers
  end
end
