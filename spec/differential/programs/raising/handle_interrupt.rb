# frozen_string_literal: true

# Thread.handle_interrupt holds back a limit until the block is over

order = []
outcome = attempt do
  Timeout.timeout(0.02, IOError) do
    Thread.handle_interrupt(IOError => :never) do
      sleep(0.06)
      order << :whole
    end
    sleep
  end
end
say outcome, order
