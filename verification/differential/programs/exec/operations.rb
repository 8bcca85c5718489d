# frozen_string_literal: true

# exec replaces the program although reads and writes are under way

one, other = UNIXSocket.pair
task { one.write("w" * 2_000_000) }
task { one.read(10) }
task { sleep }
settle
source = "io = IO.for_fd(ARGV[0].to_i); io.read_nonblock(1); puts :own, io.sync"
exec(RbConfig.ruby, "--disable-gems", "-e", source, other.fileno.to_s, { other => other })
