# frozen_string_literal: true

# Killing a task that has ended does nothing

ended = task { :value }
say ended.value
ended.kill
say ended.alive?, ended.value
