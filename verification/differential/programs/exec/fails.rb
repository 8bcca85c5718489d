# frozen_string_literal: true

# exec of a program that does not exist raises Errno::ENOENT, and tasks go on

sleeper = task { sleep(0.05) && :slept }
say attempt { exec("/nonexistent/program") }, sleeper.value
