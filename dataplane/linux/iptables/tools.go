package iptables

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
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

// findTools selects the programs to use.
func findTools(ctx context.Context, r runner, want Variant) (tools, error) {
	byDefault, err := askVersion(ctx, r, "iptables")
	if err != nil && !errors.Is(err, errNoIPTables) {
		return tools{}, err
	}
	var found []tools
	for _, v := range []Variant{VariantNFT, VariantLegacy} {
		if want != VariantAuto && want != v {
			continue
		}
		t, err := askVersion(ctx, r, "iptables-"+string(v))
		switch {
		case err == nil && t.variant == v:
			found = append(found, t)
		case byDefault.variant == v:
			found = append(found, byDefault)
		}
	}
	switch {
	case len(found) == 0 && want != VariantAuto && byDefault.base != "":
		return tools{}, fmt.Errorf("iptables' variant %s is not installed, only %s", want, byDefault.variant)
	case len(found) == 0:
		return tools{}, errNoIPTables
	case len(found) == 1:
		return found[0], nil
	}
	nft, legacy := found[0], found[1]
	switch a, b := countRules(ctx, r, nft), countRules(ctx, r, legacy); {
	case a > b:
		return nft, nil
	case b > a, byDefault.variant == VariantLegacy:
		return legacy, nil
	}
	return nft, nil
}

// otherTools returns the programs of the variant that is not in use, if they are installed.
func otherTools(ctx context.Context, r runner, used tools) (tools, bool) {
	other := VariantNFT
	if used.variant == VariantNFT {
		other = VariantLegacy
	}
	t, err := askVersion(ctx, r, "iptables-"+string(other))
	return t, err == nil && t.variant == other
}

var versionLine = regexp.MustCompile(`v(\d+)\.(\d+)(?:\.(\d+))?(?:\s+\((\w+)\))?`)

// askVersion runs program --version.
func askVersion(ctx context.Context, r runner, program string) (tools, error) {
	if !r.has(program) || !r.has(program+"-restore") || !r.has(program+"-save") {
		return tools{}, errNoIPTables
	}
	var out bytes.Buffer
	err := r.run(ctx, command{program: program, args: []string{"--version"}, line: func(l []byte) { out.Write(l) }})
	if err != nil {
		return tools{}, fmt.Errorf("ask iptables for its version: %w", err)
	}
	m := versionLine.FindStringSubmatch(out.String())
	if m == nil {
		return tools{}, fmt.Errorf("ask iptables for its version: %s says %q", program, out.String())
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
		if t.variant == VariantLegacy && len(legacyTables(r, f)) == 0 {
			continue // reading would make the kernel create them
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
