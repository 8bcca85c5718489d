# frozen_string_literal: true

module Heddle
  # Makes texts of the program fit for reports. Names, messages and paths can have any encoding, and invalid bytes.
  #
  # @api private
  module Text
    # The number of characters of a name that reports show. A name may come from outside, as a request's path does.
    NAME_LENGTH = 120
    private_constant :NAME_LENGTH

    # @param text [String, nil]
    # @return [String, nil] valid UTF-8
    def self.clean(text)
      return unless text
      # Bytes without an encoding are most likely UTF-8.
      return text.dup.force_encoding(Encoding::UTF_8).scrub if text.encoding == Encoding::BINARY

      text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub
    rescue Encoding::ConverterNotFoundError
      # Ruby knows some encodings by name alone.
      text.dup.force_encoding(Encoding::UTF_8).scrub
    end

    # @param text [String]
    # @param most [Integer] how many characters
    # @return [String] its first characters, in an encoding that fits others
    def self.shortened(text, most = NAME_LENGTH)
      first = text[0, most]
      first = clean(first) unless first.encoding == Encoding::UTF_8
      text.length > most ? "#{first}…" : first
    end

    # @param name [String, nil]
    # @return [String, nil] what reports in other formats than a line show of a fiber's name
    def self.of_name(name) = name && clean(shortened(name))

    # @param text [String]
    # @param most [Integer] how many characters
    # @return [String] what one line shows of it, without control characters
    def self.line(text, most)
      shortened(clean(text), most).gsub(/[[:cntrl:]]/) { |character| character.dump[1..-2] }
    end
  end
  private_constant :Text
end
