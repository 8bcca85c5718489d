# frozen_string_literal: true

require_relative "method_parameters"

module Heddle
  # Raised by an adapter if its library lacks what the adapter relies on, and requests would be mixed without that.
  class IncompatibleLibraryError < Error; end

  # A part of an adapter. It states what it relies on in its library, and looks whether that is there. If something is
  # missing, the part stays off, and a line on `$stderr` says what is lost. The library's version decides nothing.
  #
  #     Heddle.const_get(:AdapterPart).new(
  #       "sidekiq", Sidekiq::VERSION, right_with: "8.1.7", without: "Sidekiq's capsules keep their threads",
  #       uses: ["Sidekiq::Processor#watchdog(_)"], overrides: { "Sidekiq::Processor" => SidekiqProcessor }
  #     ).install
  #
  # @api private
  class AdapterPart
    # `A::B`, a constant; `A::B.name` and `A::B#name`, methods, also private ones; `A::B@name`, a variable of a new
    # object. A list in parentheses is what the adapter passes: `_` for a positional argument, `key:` for a keyword, and
    # `|` before another list that it passes instead.
    REFERENCE = /\A(?<owner>[\w:]+)(?:(?<kind>[.#@])(?<name>\w+[?!=]?|<<|\[\]=?))?(?:\((?<passed>.*)\))?\z/
    private_constant :REFERENCE

    # @param library [String] the name of the gem
    # @param version [#to_s] the version that is loaded
    # @param right_with [String] the newest version with which the specs of this part ran
    # @param without [String] what the program has to do without while the part is off
    # @param uses [Array<String>] what the part calls or reads
    # @param overrides [Hash{String => Module}] by the class that the module is prepended to. The class must have each
    #   method of the module, with no parameter that the module's method does not take. A class method's owner is
    #   `A::B.singleton_class`.
    # @param only [Array<Symbol>, nil] the modules' methods that the classes must have; nil is all of them
    # rubocop:disable-next Metrics/ParameterLists -- keywords
    def initialize(library, version, right_with:, without:, uses: [], overrides: {}, only: nil)
      @library = "#{library} #{version}"
      @right_with = right_with
      @without = without
      @uses = uses
      @overrides = overrides
      @only = only
    end

    # Prepends the modules, unless something is missing.
    #
    # @return [Boolean] whether the part is on
    def install # rubocop:disable Naming/PredicateMethod -- it is an action
      return false unless usable?

      @overrides.each { |owner, override| owner_of(owner).prepend(override) }
      true
    end

    # @return [Boolean] whether nothing is missing. If something is, the first call says so on `$stderr`
    def usable?
      return @usable if defined?(@usable)

      missing = self.missing
      Kernel.warn("Heddle: #{@without}, because #{describe(missing)}") if missing.any?
      @usable = missing.empty?
    end

    # @return [void]
    # @raise [IncompatibleLibraryError] if something is missing
    def demand
      missing = self.missing
      raise IncompatibleLibraryError, "#{@without}, because #{describe(missing)}" if missing.any?
    end

    # @return [Array<String>] what is missing, each with what is there instead
    def missing = @uses.filter_map { |reference| lack(reference) } + @overrides.flat_map { |pair| lacks_of(*pair) }

    private

    def describe(missing)
      "#{@library} differs from #{@right_with}, with which this was last right: #{missing.join("; ")}"
    end

    # @return [String, nil] what is wrong with what is used
    def lack(reference)
      path, kind, name, passed = REFERENCE.match(reference).values_at(:owner, :kind, :name, :passed)
      return "#{path} is missing" unless (owner = owner_of(path))

      case kind
      when "@" then lack_of_variable(path, owner, "@#{name}")
      when "." then lack_of_method("#{path}.#{name}", method_of(owner.singleton_class, name), passed)
      when "#" then lack_of_method("#{path}##{name}", method_of(owner, name), passed)
      end
    end

    def lack_of_variable(path, owner, name)
      "#{path} has no variable #{name}" unless owner.new.instance_variable_defined?(name)
    end

    def lack_of_method(path, method, passed)
      return "#{path} is missing" unless method

      found = MethodParameters.new(method)
      return if passed.nil? || lists(passed).any? { |arguments| found.take?(*arguments) }

      "#{path} has the parameters #{found} and is called with (#{passed})"
    end

    # @return [Array<String>] what is wrong with what is overridden
    def lacks_of(path, override)
      return ["#{path} is missing"] unless (owner = owner_of(path))

      names = override.instance_methods(false) + override.private_instance_methods(false)
      names &= @only if @only
      names.filter_map do |name|
        method = method_of(owner, name)
        next "#{path}##{name} is missing" unless method

        found = MethodParameters.new(method)
        next if MethodParameters.new(override.instance_method(name)).cover?(found)

        "#{path}##{name} has the parameters #{found}, which Heddle's does not take"
      end
    end

    # @return [Module, nil]
    def owner_of(path)
      constant = path.delete_suffix(".singleton_class")
      return unless Object.const_defined?(constant)

      found = Object.const_get(constant)
      constant == path ? found : found.singleton_class
    end

    # The class's own method, below what other libraries have prepended. What every object has from Kernel, such as a
    # private `select`, is none of the class.
    def method_of(owner, name)
      return unless owner.method_defined?(name) || owner.private_method_defined?(name)

      found = owner.instance_method(name)
      found = found.super_method until found.owner == owner || found.super_method.nil?
      found unless found.owner == Kernel
    end

    # @return [Array<Array(Integer, Array<Symbol>)>] for each list, the number of positional arguments, and the keywords
    def lists(passed)
      (passed.empty? ? [""] : passed.split("|")).map do |list|
        keywords, positional = list.split(",").map(&:strip).partition { |each| each.end_with?(":") }
        [positional.size, keywords.map { |each| each.delete_suffix(":").to_sym }]
      end
    end
  end
  private_constant :AdapterPart
end
