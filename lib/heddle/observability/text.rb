# frozen_string_literal: true

module Heddle
  # Makes texts of the program fit for reports. Names, messages and paths can have any encoding, and invalid bytes.
  #
  # @api private
  module Text
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
    # @return [String] what one line shows of it, without control characters
    def self.line(text, most)
      text = clean(text)
      text = "#{text[0, most]}…" if text.length > most
      text.gsub(/[[:cntrl:]]/) { |character| character.dump[1..-2] }
    end
  end
  private_constant :Text
end
