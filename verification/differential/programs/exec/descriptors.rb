# frozen_string_literal: true

# Only descriptors that are passed on are open in a spawned program

reader, writer = IO.pipe
waiter = task { reader.read(1) }
settle
count = IO.popen([RbConfig.ruby, "--disable-gems", "-e", "puts Dir.children('/proc/self/fd').size"], &:read).to_i
say count
writer.write("x")
say waiter.value
