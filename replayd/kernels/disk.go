package kernels

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"prophet/runtime/calibrate"
)

// The file that calls are made on; how often a call is repeated, and when it is enough.
const (
	fileSize = 32 << 20
	bigSize  = 1 << 20
	pageSize = 4 << 10
	most     = 200
	least    = 5
	limit    = 300 * time.Millisecond
)

// disk measures calls on a file in dir. The file has no name, so that nothing is left of it whatever happens.
func disk(ctx context.Context, dir string) (*calibrate.Disk, error) {
	d := &calibrate.Disk{Dir: dir, Calls: map[string]calibrate.Figure{}}
	var err error
	if d.Filesystem, d.Free, err = Space(dir); err != nil {
		return nil, err
	}
	if d.Free < 2*fileSize {
		return nil, fmt.Errorf("%s has %d bytes free; measuring its disk takes %d", dir, d.Free, 2*fileSize)
	}
	f, err := unnamed(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	chance := rand.New(rand.NewPCG(1, 2))
	big := make([]byte, bigSize)
	for i := range big {
		big[i] = byte(chance.Uint32()) // a disk that compresses gets nothing for free
	}
	page := big[:pageSize]
	for at := int64(0); at < fileSize; at += bigSize {
		if _, err := f.WriteAt(big, at); err != nil {
			return nil, err
		}
	}
	read := func(b []byte, at int64) error { _, err := f.ReadAt(b, at); return err }
	write := func(b []byte, at int64) error { _, err := f.WriteAt(b, at); return err }
	// The whole file: a part of a large page in the cache is not dropped.
	forget := func(readahead int) func(int64) error {
		return func(int64) error {
			if err := unix.Fadvise(int(f.Fd()), 0, 0, readahead); err != nil {
				return err
			}
			return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		}
	}
	for _, c := range []struct {
		name   string
		size   int64
		before func(at int64) error // not timed; may be nil
		call   func(at int64) error
	}{
		{calibrate.WriteCall, pageSize, nil, func(at int64) error { return write(page, at) }},
		{calibrate.FsyncCall, pageSize, func(at int64) error { return write(page, at) }, func(int64) error { return f.Sync() }},
		{calibrate.FsyncBigCall, bigSize, func(at int64) error { return write(big, at) }, func(int64) error { return f.Sync() }},
		{calibrate.CachedCall, pageSize, func(at int64) error { return read(page, at) }, func(at int64) error { return read(page, at) }},
		{calibrate.UncachedCall, pageSize, forget(unix.FADV_RANDOM), func(at int64) error { return read(page, at) }},
		{calibrate.StreamCall, bigSize, forget(unix.FADV_NORMAL), func(at int64) error { return read(big, at) }},
		{calibrate.CreateCall, pageSize, nil, func(int64) error { return create(dir) }},
	} {
		// What is not yet on the disk cannot be dropped, and is not the next call's to write.
		if err := f.Sync(); err != nil {
			return nil, err
		}
		var runs []float64
		for begin := time.Now(); len(runs) < most && (len(runs) < least || time.Since(begin) < limit); {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			at := chance.Int64N(fileSize/c.size) * c.size
			if c.before != nil {
				if err := c.before(at); err != nil {
					return nil, err
				}
			}
			start := time.Now()
			err := c.call(at)
			runs = append(runs, float64(time.Since(start)))
			if err != nil {
				return nil, err
			}
		}
		d.Calls[c.name] = calibrate.NewFigure(runs)
	}
	return d, nil
}

// unnamed is a file in dir that is gone when it is closed.
func unnamed(dir string) (*os.File, error) {
	if fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600); err == nil {
		return os.NewFile(uintptr(fd), dir), nil
	}
	f, err := os.CreateTemp(dir, ".prophet-")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

func create(dir string) error {
	f, err := os.CreateTemp(dir, ".prophet-")
	if err != nil {
		return err
	}
	f.Close()
	return os.Remove(f.Name())
}

// Space is what the filesystem under dir is called, and how many bytes are free for us.
func Space(dir string) (string, int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", 0, fmt.Errorf("%s: %w", dir, err)
	}
	name, ok := filesystems[int64(s.Type)]
	if !ok {
		name = fmt.Sprintf("filesystem %#x", int64(s.Type))
	}
	return name, int64(s.Bavail) * int64(s.Bsize), nil
}

var filesystems = map[int64]string{unix.EXT4_SUPER_MAGIC: "ext", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.TMPFS_MAGIC: "tmpfs",
	unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.NFS_SUPER_MAGIC: "nfs", unix.FUSE_SUPER_MAGIC: "fuse", unix.F2FS_SUPER_MAGIC: "f2fs"}
