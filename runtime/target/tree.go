package target

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
)

// Bounds of a directory that comes from a target.
const (
	treeFiles = 1 << 20
	treeBytes = 1 << 44
)

// save writes a file of at most that many bytes, which must not be there yet.
func save(r io.Reader, path string, most int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(f, io.LimitReader(r, most+1))
	if n > most {
		err = errors.Join(err, fmt.Errorf("%w: a file of more than %d bytes", ErrProtocol, most))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path)
	}
	return err
}

// untar makes the directory dir of a tar of plain files and directories. Nothing is written outside of it, whatever the tar
// says, and nothing is left when it fails.
func untar(r io.Reader, dir string) (err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	files, bytes := 0, int64(0)
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(h.Name, "/")
		if files++; files > treeFiles {
			return fmt.Errorf("%w: more than %d files", ErrProtocol, treeFiles)
		}
		if name == "" || len(name) > ArgMax || path.Clean(name) != name || path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") {
			return fmt.Errorf("%w: a file named %q", ErrProtocol, name)
		}
		for key := range h.PAXRecords {
			// A few bytes that would become as many gigabytes of zeros as they like.
			if strings.HasPrefix(key, "GNU.sparse.") {
				return fmt.Errorf("%w: %q is sparse", ErrProtocol, name)
			}
		}
		switch h.Typeflag {
		case tar.TypeDir:
			if err := root.MkdirAll(name, 0o700); err != nil {
				return err
			}
		case tar.TypeReg:
			if bytes += h.Size; h.Size < 0 || bytes > treeBytes {
				return fmt.Errorf("%w: more than %d bytes", ErrProtocol, int64(treeBytes))
			}
			f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				return err
			}
			_, err = io.Copy(f, t)
			if err = errors.Join(err, f.Close()); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: %q is neither a file nor a directory", ErrProtocol, name)
		}
	}
}
