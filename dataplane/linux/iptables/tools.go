package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"contiv.dev/vswitch/dataplane/linux/table"
)

// tools describes the iptables programs in use.
type tools struct {
	variant Variant
	base    string // "iptables-nft", "iptables-legacy" or "iptables"
	version version
}

// version of iptables: major, minor, patch.
type version [3]int

// Versions with relevant differences. Before 1.6.2 iptables-restore did not take the lock and did not support --random-fully.
var restoreLocks = version{1, 6, 2}

func (v version) atLeast(o version) bool {
	for i := range v {
		if v[i] != o[i] {
			return v[i] > o[i]
		}
	}
	return true
}

func (t tools) program(f table.Family, what string) string {
	name := t.base
	if f == table.IPv6 {
		name = strings.Replace(name, "iptables", "ip6tables", 1)
	}
	return name + what
}

var errNoIPTables = errors.New("iptables is not installed: install it, or choose the nftables backend")

// findTools selects the programs to use. other are those of the other variant; their base is "" if they are not installed.
func findTools(ctx context.Context, r runner, want Variant) (used, other tools, err error) {
	byDefault, err := queryVersion(ctx, r, "iptables")
	if err != nil && !errors.Is(err, errNoIPTables) {
		return tools{}, tools{}, err
	}
	named := map[Variant]tools{} // the programs whose names have the variant
	var found []tools
	for _, v := range []Variant{VariantNFT, VariantLegacy} {
		t, err := queryVersion(ctx, r, "iptables-"+string(v))
		switch {
		case err == nil && t.variant == v:
			named[v] = t
		case byDefault.variant == v:
			t = byDefault
		default:
			continue
		}
		if want == VariantAuto || want == v {
			found = append(found, t)
		}
	}
	switch {
	case len(found) == 0 && want != VariantAuto && byDefault.base != "":
		return tools{}, tools{}, fmt.Errorf("iptables' variant %s is not installed, only %s", want, byDefault.variant)
	case len(found) == 0:
		return tools{}, tools{}, errNoIPTables
	case len(found) == 1:
		used = found[0]
	default:
		used = withMoreRules(ctx, r, found[0], found[1], byDefault.variant)
	}
	if used.variant == VariantNFT {
		return used, named[VariantLegacy], nil
	}
	return used, named[VariantNFT], nil
}

// withMoreRules returns the variant with more rules; if equal, the default one. It lists rules only if the result may depend on them.
func withMoreRules(ctx context.Context, r runner, nft, legacy tools, byDefault Variant) tools {
	b := countRules(ctx, r, legacy)
	if b == 0 && byDefault != VariantLegacy {
		return nft
	}
	switch a := countRules(ctx, r, nft); {
	case a > b:
		return nft
	case b > a, byDefault == VariantLegacy:
		return legacy
	}
	return nft
}

var versionLine = regexp.MustCompile(`v(\d+)\.(\d+)(?:\.(\d+))?(?:\s+\((\w+)\))?`)

// queryVersion runs program --version.
func queryVersion(ctx context.Context, r runner, program string) (tools, error) {
	if !r.has(program) || !r.has(program+"-restore") || !r.has(program+"-save") {
		return tools{}, errNoIPTables
	}
	var out bytes.Buffer
	err := r.run(ctx, command{program: program, args: []string{"--version"}, line: func(l []byte) { out.Write(l) }})
	if err != nil {
		return tools{}, fmt.Errorf("get the version of iptables: %w", err)
	}
	m := versionLine.FindStringSubmatch(out.String())
	if m == nil {
		return tools{}, fmt.Errorf("get the version of iptables: %s says %q", program, out.String())
	}
	t := tools{base: program, variant: VariantLegacy}
	for i := range t.version {
		t.version[i], _ = strconv.Atoi(m[i+1]) // digits, or nothing for a missing patch number
	}
	if m[4] == "nf_tables" {
		t.variant = VariantNFT
	}
	return t, nil
}

// countRules returns the number of rules of the variant in both families; a table that cannot be listed counts as empty.
func countRules(ctx context.Context, r runner, t tools) int {
	n := 0
	for _, f := range []table.Family{table.IPv4, table.IPv6} {
		if tables, known := existing(r, t.variant, f); known && !slices.ContainsFunc(append(layerNames[:], "security"),
			func(l layerName) bool { return tables[l] }) {
			continue // with the legacy variant, reading would make the kernel create them
		}
		err := r.run(ctx, command{program: t.program(f, "-save"), line: func(l []byte) {
			if bytes.HasPrefix(l, []byte("-A ")) {
				n++
			}
		}})
		if err != nil {
			continue
		}
	}
	return n
}

// existing returns the tables of a variant that the kernel has; known is false if the kernel does not list them.
func existing(r runner, v Variant, f table.Family) (tables map[layerName]bool, known bool) {
	if v == VariantLegacy {
		return legacyTables(r, f), true
	}
	names, err := r.nftTables(f)
	if err != nil {
		return nil, false
	}
	tables = map[layerName]bool{}
	for _, name := range names {
		tables[layerName(name)] = true
	}
	return tables, true
}

// legacyTables returns the tables of the legacy variant that are in use.
func legacyTables(r runner, f table.Family) map[layerName]bool {
	file := "ip_tables_names"
	if f == table.IPv6 {
		file = "ip6_tables_names"
	}
	out := map[layerName]bool{}
	text, err := r.procNet(file)
	if err != nil {
		return out // the kernel does not have the legacy variant
	}
	for name := range strings.FieldsSeq(string(text)) {
		out[layerName(name)] = true
	}
	return out
}
