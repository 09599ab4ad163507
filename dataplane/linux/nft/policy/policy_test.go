package policy

import (
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/internal/nsdo"
)

func TestSuite(t *testing.T) {
	tabletest.Run(t, func(t *testing.T, ns *nsdo.Namespace) table.Backend { return open(t, ns) })
}

func open(t testing.TB, ns *nsdo.Namespace) *Backend {
	t.Helper()
	b, err := Open(Options{NS: ns})
	if err != nil {
		t.Fatal(err)
	}
	return b
}
