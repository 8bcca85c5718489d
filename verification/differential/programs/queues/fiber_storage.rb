# frozen_string_literal: true

# Locals are a task's own, and storage is inherited

Fiber[:inherited] = :outer
Thread.current[:local] = :outer
inner = task { [Fiber[:inherited], Thread.current[:local], Fiber[:inherited] = :inner] }
say inner.value, Fiber[:inherited], Thread.current[:local]
