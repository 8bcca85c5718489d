# frozen_string_literal: true

require "monitor"

module Heddle
  module RailsSupport
    # Closes races of Action Cable between the fiber that opens a connection and the thread that reads the sockets. With
    # threads alone they are lost once in a great while. With preemption they are lost often: a tick that arrives during
    # a `write` preempts the fiber as soon as the data has been sent, which is just when the client answers.
    module Cable
      # @return [void]
      def self.install
        ActiveSupport.on_load(:action_cable) { Cable.parts.each(&:install) }
      end

      # @return [Array<AdapterPart>]
      def self.parts
        [
          RailsSupport.part("Action Cable may drop messages that arrive while a connection is opened",
                            uses: ["ActionCable::Connection::ClientSocket::CONNECTING"],
                            overrides: { "ActionCable::Connection::ClientSocket" => EarlyMessages }),
          RailsSupport.part("Action Cable may keep a message for ever that arrives while a connection is opened",
                            overrides: { "ActionCable::Connection::MessageBuffer" => Locked })
        ]
      end

      # The driver sends the response 101, and only then calls `open`. A client may send, or close, in between.
      module EarlyMessages
        # @api private
        def initialize(...)
          @state_lock = Monitor.new
          super
        end

        private

        # Rails drops what arrives before the connection is open. Its MessageBuffer keeps it.
        def receive_message(data)
          return super unless @ready_state == ActionCable::Connection::ClientSocket::CONNECTING

          @event_target.on_message(data)
        end

        # Both change the state, and then tell the connection. Without the lock, a connection could learn of its end
        # first, and then be kept for ever.
        def open = @state_lock.synchronize { super }

        def finalize_close = @state_lock.synchronize { super }
      end

      # A message that is appended while the buffer is emptied for good would stay in it.
      module Locked
        # @api private
        def initialize(...)
          @lock = Monitor.new
          super
        end

        # @api private
        def append(message) = @lock.synchronize { super }

        # @api private
        def process! = @lock.synchronize { super }
      end
      private_constant :EarlyMessages, :Locked
    end
    private_constant :Cable
  end
end
