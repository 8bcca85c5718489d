# frozen_string_literal: true

# A spawned program has no signal blocked, and none ignored that was not before

say `grep -E 'Sig(Blk|Ign)' /proc/self/status`
