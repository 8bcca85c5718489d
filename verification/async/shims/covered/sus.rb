# frozen_string_literal: true

# Async's tests measure their coverage. The comparison does not.
module Covered
  # What their configuration includes.
  module Sus
  end
end
