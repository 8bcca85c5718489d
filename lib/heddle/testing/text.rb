# frozen_string_literal: true

module Heddle
  module Testing
    # Makes texts of the program fit for a report. Messages, names and paths can have any encoding, and invalid bytes.
    module Text
      # @param text [#to_s]
      # @return [String] valid UTF-8
      def self.clean(text)
        text = text.to_s
        # Bytes without an encoding are most likely UTF-8.
        return text.dup.force_encoding(Encoding::UTF_8).scrub if text.encoding == Encoding::BINARY

        text.encode(Encoding::UTF_8, invalid: :replace, undef: :replace).scrub
      rescue Encoding::ConverterNotFoundError
        # Ruby knows some encodings by name alone.
        text.dup.force_encoding(Encoding::UTF_8).scrub
      end
    end
    private_constant :Text
  end
end
