# frozen_string_literal: true

# The shorter of two nested limits ends, and at the right block

say attempt { Timeout.timeout(0.02) { attempt { Timeout.timeout(20) { sleep } } } }
say attempt { Timeout.timeout(20) { attempt { Timeout.timeout(0.02) { sleep } } } }
say attempt { Timeout.timeout(20) { Timeout.timeout(0.02) { sleep } } }
