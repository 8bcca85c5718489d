# frozen_string_literal: true

# exit within the block ends the process after each `ensure`

at_exit { say :at_exit }
begin
  scheduled do
    exit(5)
  ensure
    say :inner
  end
ensure
  say :outer
end
