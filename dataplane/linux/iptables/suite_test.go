package iptables

import (
	"context"
	"slices"
	"strings"
	"testing"

	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/linux/tabletest"
	"contiv.dev/vswitch/internal/nsdo"
)

// Packets are handled in the same way with all backends.
func TestPackets(t *testing.T) {
	variants(t, func(t *testing.T, v Variant) {
		tabletest.Run(t, func(t *testing.T, ns *nsdo.Namespace) table.Backend {
			b, err := New(context.Background(), Config{NS: ns, Variant: v, ScratchMarks: testMarks})
			if err != nil {
				t.Fatal(err)
			}
			return dumper{b, ns, v}
		})
	})
}

// dumper adds the kernel's state in the tested variant, without counters and empty tables.
type dumper struct {
	*Backend
	ns *nsdo.Namespace
	v  Variant
}

func (d dumper) Dump() (string, error) {
	var out []string
	for _, base := range []string{"iptables-", "ip6tables-"} {
		var part []string
		content := false
		err := system{d.ns}.run(context.Background(), command{program: base + string(d.v) + "-save", line: func(l []byte) {
			line, _, _ := strings.Cut(string(l), " [")
			switch {
			case strings.HasPrefix(line, "#"):
			case strings.HasPrefix(line, "*"):
				part, content = []string{base + line}, false
			case line == "COMMIT" && content:
				out = append(out, part...)
			case strings.HasPrefix(line, ":") && !strings.HasSuffix(line, " -"):
			default:
				part, content = append(part, line), true
			}
		}})
		if err != nil {
			return "", err
		}
	}
	var sets []string
	err := system{d.ns}.run(context.Background(), command{program: "ipset", args: []string{"save"}, line: func(l []byte) {
		sets = append(sets, string(l))
	}})
	slices.Sort(sets)
	return strings.Join(append(out, sets...), "\n"), err
}
