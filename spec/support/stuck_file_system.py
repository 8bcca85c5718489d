"""A file system with one file, whose reads last until the file `release` exists in the folder around it.

The first read makes the file `begun` there."""

import os
import stat
import sys
import time

try:
    from fusepy import FUSE, Operations
except ImportError:
    from fuse import FUSE, Operations


class StuckFileSystem(Operations):
    def __init__(self, folder):
        self.release = os.path.join(folder, "release")
        self.begun = os.path.join(folder, "begun")

    def getattr(self, path, fh=None):
        if path == "/":
            return {"st_mode": stat.S_IFDIR | 0o755, "st_nlink": 2}
        return {"st_mode": stat.S_IFREG | 0o644, "st_nlink": 1, "st_size": 1 << 20}

    def readdir(self, path, fh):
        return [".", "..", "stuck"]

    def read(self, path, size, offset, fh):
        open(self.begun, "w").close()
        while not os.path.exists(self.release):
            time.sleep(0.01)
        return b"z" * size


if __name__ == "__main__":
    mount_point = sys.argv[1]
    FUSE(StuckFileSystem(os.path.join(mount_point, "..")), mount_point, foreground=True, direct_io=True)
