# frozen_string_literal: true

# A task can be given a message, a class, a class with message and backtrace, and an exception

forms = [["just text"], [KeyError], [KeyError, "no key"], [KeyError.new("made")], []]
say(forms.map do |form|
  victim = task { attempt { sleep } }
  settle
  victim.raise(*form)
  victim.value
end)
