package sysctl

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/netlink/nettest"
)

func TestNamespace(t *testing.T) {
	a, b := nettest.New(t), nettest.New(t)
	for _, ns := range []*nettest.NS{a, b} {
		ns.IP("link add cali.0 type veth peer name peer")
	}
	w := Writer{NS: a.Namespace}
	for _, s := range []Setting{
		{"net/ipv4/conf/cali.0/rp_filter", "1"},
		{"net/ipv4/conf/cali.0/route_localnet", "1"},
		{"net/ipv4/conf/cali.0/proxy_arp", "1"},
		{"net/ipv4/neigh/cali.0/proxy_delay", "0"},
		{"net/ipv6/conf/cali.0/proxy_ndp", "1"},
		{"net/ipv6/conf/cali.0/forwarding", "1"},
	} {
		before, err := Writer{NS: b.Namespace}.Get(s.Path)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := w.Set(s.Path, s.Value); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := w.Get(s.Path); err != nil || got != s.Value {
			t.Errorf("%s is %q, %v", s.Path, got, err)
		}
		if got := strings.TrimSpace(a.Run("cat /proc/sys/" + s.Path)); got != s.Value {
			t.Errorf("%s is %q", s.Path, got)
		}
		if got, _ := (Writer{NS: b.Namespace}).Get(s.Path); got != before {
			t.Errorf("%s of another namespace went from %s to %s", s.Path, before, got)
		}
	}
}

func TestErrors(t *testing.T) {
	ns := nettest.New(t)
	w := Writer{NS: ns.Namespace}
	for _, family := range []string{"ipv4", "ipv6"} {
		err := w.Set("net/"+family+"/conf/gone/forwarding", "1")
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "conf/gone/forwarding") ||
			!strings.Contains(err.Error(), ns.Name) {
			t.Error(err)
		}
	}
	if err := w.Set("net/ipv4/conf/lo/rp_filter", "many"); err == nil || !strings.Contains(err.Error(), "many") {
		t.Error(err)
	}
	if _, err := w.Get("net/ipv4/nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestPaths tests that names, which come from outside, cannot point to other files.
func TestPaths(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "net/ipv4/conf/lo/rp_filter")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := Writer{Root: filepath.Join(root, "net")}
	for _, path := range []string{"../net/ipv4/conf/lo/rp_filter", "/etc/passwd", "", "ipv4/\x00"} {
		if err := w.Set(path, "1"); err == nil {
			t.Errorf("%q was written to", path)
		}
	}
	w.Root = root
	for _, iface := range []string{"", ".", "..", "../lo", "a/b", "lo\x00"} {
		if err := w.Set("net/ipv4/conf/"+iface+"/rp_filter", "1"); err == nil {
			t.Errorf("%q was taken for an interface", iface)
		}
	}
	if err := w.Set("net/ipv4/conf/eth9/rp_filter", "1"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(root, "net/ipv4/conf/eth9")); err == nil {
		t.Error("a file was made")
	}
	if err := w.Set("net/ipv4/conf/lo/rp_filter", "1"); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Get("net/ipv4/conf/lo/rp_filter"); err != nil || !strings.HasPrefix(got, "1") {
		t.Errorf("%q, %v", got, err)
	}
}

// TestWrite tests that settings are written in order, up to the first one that fails.
func TestWrite(t *testing.T) {
	ns := nettest.New(t)
	w := Writer{NS: ns.Namespace}
	if err := w.Set("net/ipv4/ip_forward", "0"); err != nil { // a new namespace has the host's value
		t.Fatal(err)
	}
	err := w.Write(Setting{"net/ipv4/conf/all/rp_filter", "2"}, Setting{"net/ipv4/no_such", "1"}, Setting{"net/ipv4/ip_forward", "1"})
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "no_such") {
		t.Error(err)
	}
	if got := ns.Run("cat /proc/sys/net/ipv4/conf/all/rp_filter /proc/sys/net/ipv4/ip_forward"); got != "2\n0\n" {
		t.Errorf("got %q", got)
	}
}

// TestOnlyWhatDiffers tests that correct values are not written again, as /proc/sys may be read-only.
func TestOnlyWhatDiffers(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "key")
	if err := os.WriteFile(file, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Writer{Root: root}).Set("key", "1"); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(file); string(b) != "1\n" {
		t.Errorf("the file was written to: %q", b)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := (Writer{Root: root}).Get("key"); got != "" || err != nil {
		t.Errorf("an empty one: %q, %v", got, err)
	}
}

func BenchmarkSet(b *testing.B) {
	ns := nettest.New(b)
	w := Writer{NS: ns.Namespace}
	for b.Loop() {
		if err := w.Set("net/ipv4/conf/lo/rp_filter", "1"); err != nil {
			b.Fatal(err)
		}
	}
}
