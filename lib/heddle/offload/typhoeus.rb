# frozen_string_literal: true

require "typhoeus"
require_relative "../offload"

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

    ::Ethon::Curl.singleton_class.prepend(TyphoeusCalls)
  end
end
