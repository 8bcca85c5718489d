# frozen_string_literal: true

require "typhoeus"
require_relative "../offload"

return unless Heddle.supported?

module Heddle
  module Offload # :nodoc:
    # Single requests wait in libcurl, a Hydra's in `select`; both block the thread.
    module TyphoeusCalls
      # @api private
      def easy_perform(...) = Offload.call { super }

      # @api private
      def select(...) = Offload.call { super }
    end
    private_constant :TyphoeusCalls

    # Typhoeus makes its requests by ethon. Both methods of ethon are undocumented.
    AdapterPart.new(
      "ethon", ::Ethon::VERSION,
      right_with: "0.18.0", without: "a request of typhoeus blocks all fibers of its thread",
      overrides: { "Ethon::Curl.singleton_class" => TyphoeusCalls }
    ).install
  end
end
