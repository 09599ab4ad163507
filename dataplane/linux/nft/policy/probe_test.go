package policy

import (
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
)

// TestSupported: the error names a feature that no kernel has.
func TestSupported(t *testing.T) {
	n := tabletest.NewNet(t, tabletest.Options{Pods: 1})
	err := supported(n.Host.NS, func() *family {
		f := newFamily(table.IPv4)
		f.hook(table.NAT, table.Postrouting).base.typ = "nonsense"
		return f
	})
	if err == nil || !strings.Contains(err.Error(), "fib of the outgoing interface") {
		t.Errorf("a kernel without that type of chain is reported as %v", err)
	}
}
