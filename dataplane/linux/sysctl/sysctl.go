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

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/internal/nsdo"
)

// Writer writes settings of one network namespace; nil NS: the process's own. Safe for concurrent use.
type Writer struct {
	NS   *nsdo.Namespace
	Root string // "": /proc/sys; for tests
}

// Tree is a group of per-interface settings.
type Tree string

// The trees.
const (
	Conf  Tree = "conf"  // net/ipv4/conf/<iface>/…
	Neigh Tree = "neigh" // net/ipv4/neigh/<iface>/…
)

// Set writes value to path, relative to /proc/sys ("net/ipv4/ip_forward"), unless it is there already. Dots are not
// separators: names of interfaces may contain them. The error is fs.ErrNotExist (by errors.Is) if there is no such setting,
// as that of an interface that is gone.
func (w Writer) Set(path, value string) error {
	_, err := w.Ensure(path, value)
	return err
}

// Ensure is Set, and says whether it had to write.
func (w Writer) Ensure(path, value string) (wrote bool, err error) {
	file, err := w.file(path)
	if err == nil {
		err = w.NS.Do(func() (err error) {
			wrote, err = write(file, value)
			return err
		})
	}
	switch {
	case err == nil:
		return wrote, nil
	case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(path, "net/ipv6/"):
		return false, fmt.Errorf("set sysctl %s to %s in %s: %w; is the interface gone, or IPv6 off in the kernel?", path, value, w.NS, err)
	default:
		return false, fmt.Errorf("set sysctl %s to %s in %s: %w", path, value, w.NS, err)
	}
}

// Get reads path, without the white space around its value.
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

// SetIface writes a setting of an interface: SetIface(table.IPv4, Conf, "cali0", "rp_filter", "1"). Errors are those of Set.
func (w Writer) SetIface(f table.Family, tree Tree, iface, key, value string) error {
	path, err := IfacePath(f, tree, iface, key)
	if err != nil {
		return err
	}
	return w.Set(path, value)
}

// IfacePath is the path, relative to /proc/sys, of a setting of an interface. An interface's name is one element of a path:
// anything else is an error, since it may come from outside and must not lead elsewhere.
func IfacePath(f table.Family, tree Tree, iface, key string) (string, error) {
	if iface == "" || iface == "." || iface == ".." || strings.ContainsAny(iface, "/\x00") {
		return "", fmt.Errorf("sysctl %s/%s: %q cannot be the name of an interface", tree, key, iface)
	}
	family := "ipv4"
	if f == table.IPv6 {
		family = "ipv6"
	}
	return "net/" + family + "/" + string(tree) + "/" + iface + "/" + key, nil
}

func (w Writer) file(path string) (string, error) {
	if !filepath.IsLocal(path) || strings.ContainsAny(path, "\x00\n") {
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

// write writes only what differs: /proc/sys may be read-only and right already, and writing "forwarding" is not cheap. A file
// is never made.
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
