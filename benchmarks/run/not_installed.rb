# frozen_string_literal: true

# Raised by a contestant that is not installed, or lacks the feature to be measured. The message says what is missing;
# the report lists the contestant as left out, with this message.
class NotInstalled < StandardError; end
