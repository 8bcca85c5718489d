# frozen_string_literal: true

require "yard"
require_relative "markdown"

module Website
  # The API reference, from the comments in lib/ as YARD reads them. One page for each class and module that has
  # something public.
  class Reference
    # `entries` are {Entry}s of the methods.
    Page = Data.define(:path, :address, :object, :html, :entries)
    Entry = Data.define(:object, :title, :anchor, :signature, :html, :tags, :text)
    Tag = Data.define(:kind, :name, :types, :html)

    KINDS = {
      "param" => "Parameters", "option" => "Options", "yieldparam" => "Yields", "yieldreturn" => "Block returns",
      "return" => "Returns", "raise" => "Raises"
    }.freeze
    # Any of these tags means that the method takes a block.
    BLOCK = %i[yield yieldparam yieldreturn].freeze

    def initialize(root)
      YARD::Logger.instance.level = YARD::Logger::ERROR
      YARD::Registry.clear
      files = Dir.glob("lib/**/*.rb", base: root).map { |file| File.join(root, file) }
      # The last comment of a module counts, and those that say `:nodoc:` should not.
      YARD.parse(files.partition { |file| File.read(file).include?("# :nodoc:") }.flatten)
      @objects = YARD::Registry.all(:class, :module).select { |object| public?(object) && says_something?(object) }
    end

    def pages = @pages ||= @objects.sort_by(&:path).map { |object| page(object) }

    private

    def public?(object)
      return true if object.root?
      return false if object.visibility != :public || object.has_tag?(:private)

      !(object.has_tag?(:api) && object.tag(:api).text == "private") && public?(object.namespace)
    end

    def methods_of(object) = object.meths(inherited: false, included: false).select { |method| public?(method) }

    def says_something?(object)
      heddle = object.path.start_with?("Heddle", "ActiveJob::QueueAdapters::Heddle")
      heddle && !object.docstring.blank? && (object.type == :class || methods_of(object).any?)
    end

    def address(object) = "api-#{object.path.gsub("::", "-").downcase}.html"

    def page(object)
      methods = methods_of(object).sort_by { |method| [order(method), method.name.to_s] }
      Page.new(path: object.path, address: address(object), object:, html: text(object, object),
               entries: methods.map { |method| entry(method) })
    end

    # Methods of the module first, then `new`, then those of its objects.
    def order(method)
      return 1 if method.name == :initialize

      method.scope == :class ? 0 : 2
    end

    def entry(method)
      created = method.name == :initialize
      title = created ? "#{method.namespace.path}.new" : method.path
      Entry.new(object: method, title:, anchor: anchor(method), signature: signature(method, created),
                html: text(method, method.namespace), tags: tags(method), text: method.docstring.to_s)
    end

    def anchor(method) = "#{"class-" if method.scope == :class}#{method.name}"

    def signature(method, created)
      name = method.scope == :class || created ? "#{method.namespace.path}." : ""
      name += created ? "new" : method.name.to_s
      list = parameters_of(method)
      "#{name}#{"(#{list})" unless list.empty?}#{" { … }" if BLOCK.any? { |tag| method.has_tag?(tag) }}"
    end

    def parameters_of(method)
      parameters = method.parameters.reject { |parameter, _| parameter.to_s.start_with?("&") }
      parameters.map { |parameter, default| default_of(parameter.to_s, default) }.join(", ")
    end

    def default_of(parameter, default)
      return parameter unless default

      parameter.end_with?(":") ? "#{parameter} #{default}" : "#{parameter} = #{default}"
    end

    def tags(method)
      method.docstring.tags.filter_map do |tag|
        next unless KINDS.key?(tag.tag_name)

        source = tag.is_a?(YARD::Tags::OptionTag) ? tag.pair : tag
        name = source.name.to_s.delete_prefix(":")
        default = source.respond_to?(:defaults) && source.defaults&.first
        described = [source.text, ("default: `#{default}`" if default)].compact.join("; ")
        Tag.new(kind: tag.tag_name, name:, types: source.types, html: inline(described, method.namespace))
      end
    end

    def text(object, namespace)
      examples = object.docstring.tags(:example).map { |tag| "\n\n#{tag.name}\n\n```ruby\n#{tag.text}\n```\n" }
      Markdown.new(linked(object.docstring, namespace) + examples.join).to_html
    end

    def inline(text, namespace) = Markdown.new(linked(text, namespace)).to_html.sub(%r{\A<p>(.*)</p>\n\z}m, '\1')

    # YARD's {links} to classes and methods.
    def linked(text, namespace)
      text.gsub(/\{(?!file:)([\w:.#?!=]+)(?: ([^}]*))?\}/) do
        name, title = Regexp.last_match.captures
        found = YARD::Registry.resolve(namespace, name, true)
        target = found && link_to(found)
        target ? "[#{title || "`#{name.delete_prefix("#")}`"}](#{target})" : "`#{title || name}`"
      end
    end

    def link_to(object)
      place = object.is_a?(YARD::CodeObjects::MethodObject) ? object.namespace : object
      return unless @objects.include?(place) && (place == object || public?(object))

      place == object ? address(place) : "#{address(place)}##{anchor(object)}"
    end
  end
end
