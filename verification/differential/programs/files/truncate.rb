# frozen_string_literal: true

# truncate, fsync, fdatasync and sparse files

File.open("file", "w+") do |file|
  file.write("0123456789")
  say file.truncate(5), file.size, file.fsync, file.fdatasync
  file.pwrite("end", 1_000_000)
  say file.size, file.pread(3, 999_999).bytes, file.flush.equal?(file)
end
