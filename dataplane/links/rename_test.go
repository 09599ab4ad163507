package links

import (
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// oldKernel is one link of a kernel before Linux 6.2, which renames a link before it sets it down, and only if it is down.
type oldKernel struct {
	up       bool
	name     string
	requests int
}

func (k *oldKernel) exec(b *netlink.Batch) error {
	k.requests++
	msg := b.Bytes()[unix.SizeofNlMsghdr:]
	name := ""
	netlink.Attributes(msg, unix.SizeofIfInfomsg, func(typ uint16, v []byte) {
		if typ == unix.IFLA_IFNAME {
			name = netlink.Text(v)
		}
	})
	if name != "" && k.up {
		return unix.EBUSY
	}
	if name != "" {
		k.name = name
	}
	if binary.NativeEndian.Uint32(msg[12:])&unix.IFF_UP != 0 {
		k.up = binary.NativeEndian.Uint32(msg[8:])&unix.IFF_UP != 0
	}
	return nil
}

// TestRenameBeforeLinux62: a link that is up is set down by a request of its own before it is renamed.
func TestRenameBeforeLinux62(t *testing.T) {
	for _, tc := range []struct {
		up   bool
		spec linkSpec
		want oldKernel
	}{
		{true, linkSpec{index: 7, nsFD: -1, name: "b"}, oldKernel{name: "b", requests: 3}},
		{true, linkSpec{index: 7, nsFD: -1, name: "b", down: true}, oldKernel{name: "b", requests: 3}},
		{false, linkSpec{index: 7, nsFD: -1, name: "b"}, oldKernel{name: "b", requests: 1}},
		{true, linkSpec{index: 7, nsFD: -1, mtu: 1400}, oldKernel{name: "a", up: true, requests: 1}},
	} {
		k := oldKernel{up: tc.up, name: "a"}
		if err := renameLink(k.exec, tc.spec); err != nil || k != tc.want {
			t.Errorf("%+v of a link that is up %t: %+v, %v, want %+v", tc.spec, tc.up, k, err, tc.want)
		}
	}
	calls := 0
	failing := func(err error) func(*netlink.Batch) error {
		return func(*netlink.Batch) error { calls++; return err }
	}
	if err := renameLink(failing(unix.EEXIST), linkSpec{nsFD: -1, name: "b"}); !errors.Is(err, unix.EEXIST) || calls != 1 {
		t.Errorf("%v after %d requests", err, calls)
	}
}
