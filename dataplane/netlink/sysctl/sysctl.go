package sysctl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"contiv.dev/vswitch/internal/nsdo"
)

// Writer writes settings of one network namespace; NS nil: that of the process. Safe for concurrent use.
type Writer struct {
	NS   *nsdo.Namespace
	Root string // "": /proc/sys; other values are for tests
}

// Setting is a value for a path relative to /proc/sys, e.g. "net/ipv4/conf/eth0/rp_filter". Dots are not separators: names of interfaces may
// contain them.
type Setting struct {
	Path  string
	Value string
}

// Set writes value to path unless the setting already has the value. The error is fs.ErrNotExist (by errors.Is) if there is no such setting,
// for example that of an interface that is gone.
func (w Writer) Set(path, value string) error {
	_, err := w.Ensure(path, value)
	return err
}

// Ensure is like Set, and reports whether it wrote the value.
func (w Writer) Ensure(path, value string) (wrote bool, err error) {
	err = w.NS.Do(func() (err error) {
		wrote, err = w.ensure(path, value)
		return err
	})
	return wrote, err
}

// Write sets several settings in order, entering the namespace once. It stops at the first failure.
func (w Writer) Write(settings ...Setting) error {
	return w.NS.Do(func() error {
		for _, s := range settings {
			if _, err := w.ensure(s.Path, s.Value); err != nil {
				return err
			}
		}
		return nil
	})
}

// ensure implements Ensure on a thread in the namespace.
func (w Writer) ensure(path, value string) (wrote bool, err error) {
	file, err := w.file(path)
	if err == nil {
		wrote, err = write(file, value)
	}
	switch {
	case err == nil:
		return wrote, nil
	case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(path, "net/ipv6/"):
		return false, fmt.Errorf("set sysctl %s to %s in %s: %w; check that the interface exists and that the kernel has IPv6", path, value, w.NS, err)
	default:
		return false, fmt.Errorf("set sysctl %s to %s in %s: %w", path, value, w.NS, err)
	}
}

// Get reads path and returns its value without surrounding white space.
func (w Writer) Get(path string) (value string, err error) {
	file, err := w.file(path)
	if err == nil {
		err = w.NS.Do(func() (err error) {
			value, err = read(file)
			return err
		})
	}
	if err != nil {
		return "", fmt.Errorf("read sysctl %s in %s: %w", path, w.NS, err)
	}
	return value, nil
}

// file returns the file of path. It rejects a path that is not clean and local: an interface's name may come from outside and must not point to
// another file.
func (w Writer) file(path string) (string, error) {
	if !filepath.IsLocal(path) || filepath.Clean(path) != path || strings.ContainsAny(path, "\x00\n") {
		return "", errors.New("not a path below /proc/sys")
	}
	root := w.Root
	if root == "" {
		root = "/proc/sys"
	}
	return filepath.Join(root, path), nil
}

func read(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	var buf [256]byte
	n, err := f.Read(buf[:])
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return string(bytes.TrimSpace(buf[:n])), nil
}

// write writes only a value that differs: /proc/sys may be read-only and already correct, and writing "forwarding" is expensive. A file is
// never created.
func write(file, value string) (wrote bool, err error) {
	if now, err := read(file); err == nil && now == value {
		return false, nil
	} else if errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return false, err
	}
	_, err = f.WriteString(value)
	return true, errors.Join(err, f.Close())
}
