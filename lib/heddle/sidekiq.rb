# frozen_string_literal: true

require "sidekiq"
require "sidekiq/capsule"
require "sidekiq/manager"
require "heddle/executor"

# `Processor#dispatch`, `#run` and `#watchdog`, and the variable `@thread`, are private.
Heddle.const_get(:TriedVersions).check("sidekiq", Sidekiq::VERSION)

require "heddle/jobs/sidekiq_capsule"
require "heddle/jobs/sidekiq_processor"

module Sidekiq # :nodoc:
  Capsule.prepend(Heddle::Jobs::SidekiqCapsule)
  Processor.prepend(Heddle::Jobs::SidekiqProcessor)
end
