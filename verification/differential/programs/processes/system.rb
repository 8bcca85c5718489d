# frozen_string_literal: true

# system tells true, false and nil, and $? is right

say system("true"), $CHILD_STATUS.exitstatus, system("exit 3"), $CHILD_STATUS.exitstatus
say system("/missing/program"), $CHILD_STATUS.exitstatus
say attempt { system("/missing/program", exception: true) }, attempt { system("exit 2", exception: true) }
