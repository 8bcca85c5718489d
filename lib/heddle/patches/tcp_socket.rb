# frozen_string_literal: true

module Heddle # :nodoc:
  # Makes `TCPSocket.new` connect by {TCPConnect}, so that the thread's other fibers run in the meantime. The method is
  # replaced, for the reason that {HostNamesPatch} gives.
  #
  # @api private
  class ::TCPSocket
    original = instance_method(:initialize)
    original = original.super_method until original.owner == self
    # If another library has replaced the method before, it is unknown what that one does. It stays.
    unless original.source_location
      define_method(:initialize_without_heddle, original)
      private :initialize_without_heddle

      # Connects; see Ruby's documentation.
      def initialize(*arguments, **options)
        if HostNames.scheduled?
          TCPConnect.call(self, arguments, options) { initialize_without_heddle(*arguments, **options) }
        else
          initialize_without_heddle(*arguments, **options)
        end
      end
    end
  end
end
