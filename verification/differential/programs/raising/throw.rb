# frozen_string_literal: true

# An uncaught throw ends its task alone

failing = task { throw :nowhere }
say attempt { failing.value }, task { catch(:here) { throw :here, :caught } }.value
