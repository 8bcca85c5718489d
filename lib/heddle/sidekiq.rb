# frozen_string_literal: true

require "sidekiq"
require "sidekiq/capsule"
require "sidekiq/manager"
require "sidekiq/processor"
require "heddle"
require "heddle/jobs/sidekiq_threads"

unless Heddle.supported?
  Sidekiq::Capsule.prepend(Heddle::Jobs::SidekiqThreads)
  Heddle.const_get(:Extension).step_aside("Sidekiq's capsules keep their threads")
  return
end

require "heddle/executor"
require "heddle/jobs/sidekiq_capsule"
require "heddle/jobs/sidekiq_processor"

# `Processor#dispatch`, `#run` and `#watchdog`, and the variable `@thread`, are private.
on = Heddle.const_get(:AdapterPart).new(
  "sidekiq", Sidekiq::VERSION,
  right_with: "8.1.7",
  without: "Sidekiq's capsules keep their threads",
  uses: ["Sidekiq::Processor#capsule()", "Sidekiq::Processor#run()", "Sidekiq::Processor#watchdog(_)",
         "Sidekiq::Processor#thread()", "Sidekiq::Capsule#name()", "Sidekiq::Shutdown"],
  overrides: { "Sidekiq::Capsule" => Heddle::Jobs::SidekiqCapsule,
               "Sidekiq::Processor" => Heddle::Jobs::SidekiqProcessor },
  only: %i[stop start dispatch]
).install
Sidekiq::Capsule.prepend(Heddle::Jobs::SidekiqThreads) unless on
