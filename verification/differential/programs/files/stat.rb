# frozen_string_literal: true

# stat, rename, link, utime and chmod by tasks

File.write("a", "x")
say task { File.rename("a", "b") }.value, File.exist?("a"), File.link("b", "c")
say File.stat("c").nlink, File.symlink("b", "d"), File.readlink("d")
say File.chmod(0o600, "b"), File.stat("b").mode.to_s(8), File.utime(0, 0, "b"), File.mtime("b").to_i
say File.delete("b", "c", "d")
