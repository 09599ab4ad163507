package policy

import (
	"testing"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
)

// FuzzDumpRule: showing a rule of the kernel with arbitrary expressions and user data does not panic.
func FuzzDumpRule(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x10\x00\x01\x00\x0c\x00\x01\x00\x6c\x6f\x6f\x6b\x75\x70\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		(&dumper{anonymous: map[string]string{}}).rule(wire.Rule{Exprs: data, UserData: data})
	})
}
