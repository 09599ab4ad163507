package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"contiv.dev/vswitch/dataplane/linux/table"
)

var _ table.Counters = (*Backend)(nil)

// ReadCounters implements table.Counters with one iptables-save per family. iptables counts every rule, so counting has no extra cost per
// packet.
func (b *Backend) ReadCounters(ctx context.Context, families []table.Family, chains []string, each func(chain, comment string, packets uint64)) error {
	wanted := make(map[string]bool, len(chains))
	for _, c := range chains {
		wanted[c] = true
	}
	filter := layerNames[table.Filter]
	for _, f := range families {
		if b.env.tools.variant == VariantLegacy && !legacyTables(b.env.runner, f)[filter] {
			continue // reading would make the kernel create the table
		}
		whole := false
		err := b.env.runner.run(ctx, command{
			program: b.env.tools.program(f, "-save"), args: []string{"-c", "-t", string(filter)},
			line: func(l []byte) {
				if chain, comment, n, ok := countedRule(l); ok && wanted[chain] {
					each(chain, comment, n)
				}
				whole = whole || bytes.Equal(l, []byte("COMMIT"))
			},
		})
		if err == nil && !whole {
			err = errors.New("the output ends early")
		}
		if err != nil {
			return fmt.Errorf("read counters of IPv%d: %w", f, err)
		}
	}
	return nil
}

// countedRule parses a line of iptables-save -c: `[12:720] -A chain -m comment --comment "cv:…" -m comment --comment "text" … -j RETURN`.
// If a rule of the model became several rules, the one that ends the processing has the number of matching packets; the others only set
// marks.
func countedRule(l []byte) (chain, comment string, packets uint64, ok bool) {
	rest, ok := bytes.CutPrefix(l, []byte("["))
	if !ok {
		return "", "", 0, false
	}
	number, rest, _ := bytes.Cut(rest, []byte(":"))
	_, rest, _ = bytes.Cut(rest, []byte("] -A "))
	name, args, _ := bytes.Cut(rest, []byte(" "))
	packets, err := strconv.ParseUint(string(number), 10, 64)
	if err != nil || findHash(args) == (ruleHash{}) || bytes.Contains(args, []byte(" -j MARK ")) {
		return "", "", 0, false
	}
	const flag = `--comment "`
	_, args, _ = bytes.Cut(args, []byte("--comment ")) // the comment with the hash
	_, args, ok = bytes.Cut(args, []byte(flag))
	text, _, whole := bytes.Cut(args, []byte(`"`))
	return string(name), string(text), packets, ok && whole
}
