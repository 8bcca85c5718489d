# frozen_string_literal: true

module ActionDispatch
  # The helper of Action Pack's tests defines tests in browsers, up to Rails 8.0. Without Capybara and Selenium no test
  # would load.
  class SystemTestCase
    # Takes a browser, and does nothing.
    def self.driven_by(...) = nil
  end
end
