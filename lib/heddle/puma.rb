# frozen_string_literal: true

require "puma"
require "puma/server"
require "puma/dsl"
require_relative "../heddle"
require_relative "puma/settings"
require_relative "puma/dsl"

unless Heddle.supported?
  Heddle.const_get(:Extension).step_aside("Puma serves with its threads")
  return
end

if Heddle::PumaSupport::Settings.off?
  Kernel.warn("Heddle: Puma serves with its threads, because HEDDLE=off")
  return
end

require "puma/thread_pool"
require_relative "puma/server"

# What `Server#run` does is done anew, and a server's private methods are called.
on = Heddle.const_get(:AdapterPart).new(
  "puma", Puma::Const::PUMA_VERSION,
  right_with: "8.0.2",
  without: "Puma serves with its threads",
  uses: [
    "Puma::Server#process_client(_ | _, _)", "Puma::Server#reactor_wakeup(_)", "Puma::Server#handle_servers()",
    "Puma::Server#options()", "Puma::Server#events()", "Puma::Server#log_writer()", "Puma::Server#stop()",
    "Puma::ThreadPool#initialize(_, _ | _, _, server:)", "Puma::ThreadPool#stats()",
    "Puma::ThreadPool#trigger_before_thread_start_hooks()", "Puma::ThreadPool#trigger_before_thread_exit_hooks()",
    "Puma::ThreadPool#trigger_out_of_band_hook()", "Puma::ThreadPool::ForceShutdown",
    "Puma::ThreadPool::SHUTDOWN_GRACE_TIME", "Puma::Client#timeout()", "Puma::Client#to_io()", "Puma::Client#close()",
    "Puma::Util.pipe()", "Puma.set_thread_name(_)"
  ],
  overrides: { "Puma::Server" => Heddle::PumaSupport::Server },
  only: %i[run handle_check handle_request notify_safely]
).install
return unless on

require_relative "metrics/lag_probe"
require_relative "puma/connection"
require_relative "puma/permits"
require_relative "puma/fiber_pool"
require_relative "puma/reactor"
require_relative "puma/server_thread"
require_relative "puma/slow_requests"
require_relative "puma/rack_timeout"
require_relative "puma/request_name"
require_relative "puma/request"
