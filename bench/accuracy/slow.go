package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// slowDisk is a filesystem over memory whose syncs take a given time: all else goes through to the memory, reads and writes
// without passing by us where the kernel lets them.
type slowDisk struct {
	server *fuse.Server
	memory string
	dir    string
}

// slowNode is a file or a directory on it.
type slowNode struct {
	*fs.LoopbackNode
	takes time.Duration
}

func (n *slowNode) WrapChild(_ context.Context, child fs.InodeEmbedder) fs.InodeEmbedder {
	if l, ok := child.(*fs.LoopbackNode); ok {
		return &slowNode{l, n.takes}
	}
	return child
}

// Fsync is of files and directories.
func (n *slowNode) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	time.Sleep(n.takes)
	return 0
}

func mountSlow(dir string, takes time.Duration) (*slowDisk, error) {
	memory, err := os.MkdirTemp("/dev/shm", fmt.Sprintf("prophet-accuracy-%d-", os.Getpid()))
	if err != nil {
		return nil, err
	}
	d := &slowDisk{memory: memory, dir: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		os.RemoveAll(memory)
		return nil, err
	}
	root, err := fs.NewLoopbackRoot(memory)
	if err != nil {
		os.RemoveAll(memory)
		return nil, err
	}
	top := &slowNode{root.(*fs.LoopbackNode), takes}
	top.RootData.RootNode = top
	long := time.Hour
	o := &fs.Options{AttrTimeout: &long, EntryTimeout: &long, NegativeTimeout: &long}
	o.MountOptions = fuse.MountOptions{DirectMount: true, FsName: "prophet-accuracy", Name: "slow"}
	if d.server, err = fs.Mount(dir, top, o); err != nil {
		os.RemoveAll(memory)
		return nil, fmt.Errorf("a filesystem in user space cannot be mounted here: %w (as root: modprobe fuse)", err)
	}
	keepOwn("/dev/fuse")
	return d, nil
}

// keepOwn closes the descriptors of a file in programs that are started from here. With the filesystem's in one of them it would outlive
// us, and whoever reads there would wait for ever.
func keepOwn(path string) {
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == path {
			if fd, err := strconv.Atoi(e.Name()); err == nil {
				syscall.CloseOnExec(fd)
			}
		}
	}
}

func (d *slowDisk) unmount() error {
	var err error
	for range 50 {
		if err = d.server.Unmount(); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if err != nil {
		err = syscall.Unmount(d.dir, syscall.MNT_DETACH)
	}
	os.RemoveAll(d.memory)
	return err
}
