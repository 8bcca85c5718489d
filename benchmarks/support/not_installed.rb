# frozen_string_literal: true

# Raised by a contestant that isn't here, or not in the form in which it is to be measured. The message says what is
# missing; the report leaves the contestant out and names it with that.
class NotInstalled < StandardError; end
