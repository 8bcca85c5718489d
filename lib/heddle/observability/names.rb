# frozen_string_literal: true

module Heddle # :nodoc:
  # The names of fibers. A name is an instance variable of its fiber, so switching fibers costs nothing for it.
  module Names
    VARIABLE = :@heddle_name
    # What the names of Heddle's own fibers begin with, such as that of the one that measures the lag.
    OWN = "heddle: "
    private_constant :VARIABLE

    class << self
      # @return [String, nil]
      def of(fiber)
        fiber.instance_variable_get(VARIABLE)
      end

      # @param name [Object, nil] anything with `to_s`
      # @return [String, nil] the name as it is stored
      # @raise [TypeError] if `to_s` returns no String
      def convert(name)
        return if name.nil?

        name = String(name)
        name.frozen? ? name : name.dup.freeze
      end

      # Servers call this twice for each request.
      #
      # @param name [Object, nil] anything with `to_s`; nil removes the name
      # @return [String, nil] the name as it was stored
      # @raise [TypeError] if `to_s` returns no String
      def assign(fiber, name)
        name = convert(name) unless name.nil?
        Traces.named(fiber, name) if Traces.begun?
        Native.name_account(fiber, name) if Accounting.begun?
        # For nil, removing the variable would cost more.
        fiber.instance_variable_set(VARIABLE, name)
      end

      # @param name [String]
      # @return [Boolean] whether it names a fiber of Heddle's own
      def own?(name) = name.b.start_with?(OWN)

      # @return [String] the name for a line of a report, quoted, after a space; empty for a fiber without a name
      def suffix(fiber) = quoted(of(fiber))

      # @param name [String, nil]
      # @return [String]
      def quoted(name)
        name ? " #{Text.shortened(name).inspect}" : ""
      end

      # @return [String] `fiber 16 "GET /users/7"`
      def label(fiber)
        "fiber #{fiber.object_id}#{suffix(fiber)}"
      end
    end
  end
  private_constant :Names

  class << self
    # Names the current fiber. {Heddle.fibers}, {Heddle.dump}, and Heddle's reports of unhandled errors and of fibers
    # that do not end show the name. A name costs nothing when fibers switch. Any thread may call this, with any
    # scheduler or none.
    #
    # With a block, the fiber has the name while the block runs, and then its previous one again.
    #
    # @param name [#to_s, nil] the name; nil removes it
    # @yield what the fiber does under this name
    # @return [String, nil] the name; with a block, the block's value
    # @raise [TypeError] if the name cannot be converted to a String
    # @example
    #   Fiber.schedule do
    #     Heddle.annotate("clock")
    #     loop { sleep 1 }
    #   end
    # @example For a part of the fiber's work
    #   Heddle.annotate("#{request.method} #{request.path}") { app.call(env) }
    def annotate(name)
      fiber = Fiber.current
      return Names.assign(fiber, name) unless block_given?

      previous = Names.of(fiber)
      begin
        Names.assign(fiber, name)
        yield
      ensure
        Names.assign(fiber, previous)
      end
    end
  end
end
