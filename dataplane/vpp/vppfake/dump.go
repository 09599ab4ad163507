package vppfake

import (
	"fmt"
	"slices"
	"strings"

	"go.fd.io/govpp/binapi/fib_types"
)

// dumper collects the lines of Fake.Dump.
type dumper struct{ lines []string }

func (d *dumper) add(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

// Dump returns the whole state as text, one object per line, sorted. It contains no sw_if_index and no other number that depends on the order
// of creation: an interface with a tag is named by its tag. Two fakes with the same configuration have equal dumps, whatever the sequence of
// requests was.
func (f *Fake) Dump() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.st == nil {
		return "down\n"
	}
	d := &dumper{}
	for _, fam := range objectKinds() {
		if fam.dump != nil {
			fam.dump(f.st, d)
		}
	}
	slices.Sort(d.lines)
	return strings.Join(d.lines, "\n") + "\n"
}

func dumpTables(st *state, d *dumper) {
	for fam := range st.ip.tables {
		version := []int{4, 6}[fam]
		for _, t := range st.ip.tables[fam] {
			d.add("table ip%d %d %q locked %v", version, t.id, t.name, t.api)
			if t.hash != defaultFlowHash {
				d.add("table ip%d %d flow hash %s", version, t.id, t.hash)
			}
			for _, e := range t.entries {
				for _, s := range e.sources {
					if s.source == srcSpecial || s.source == srcDefaultRoute {
						continue
					}
					d.add("route ip%d %d %s %s: %s", version, t.id, e.prefix, st.ip.sources[s.source].Name, pathsText(s.paths))
				}
			}
		}
	}
	for key := range st.features {
		d.add("feature %s %s on %s", key.arc, key.feature, st.ifs.all[key.ifx].label())
	}
}

func pathsText(paths []path) string {
	parts := make([]string, len(paths))
	for n := range paths {
		parts[n] = paths[n].String()
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// String returns the path in the notation of the VPP CLI.
func (p path) String() string {
	var words []string
	switch p.class() {
	case attachedNextHop, recursive:
		words = append(words, "via "+p.nh.String())
	case deag:
		words = append(words, "lookup")
	case special:
		words = append(words, map[fib_types.FibPathType]string{fib_types.FIB_API_PATH_TYPE_DROP: "drop",
			fib_types.FIB_API_PATH_TYPE_ICMP_UNREACH: "unreachable", fib_types.FIB_API_PATH_TYPE_ICMP_PROHIBIT: "prohibit"}[p.kind])
	case receive:
		words = append(words, "local")
	case attachedOnly:
		words = append(words, "attached")
	default:
		words = append(words, p.kind.String())
	}
	if p.ifc != nil {
		words = append(words, p.ifc.label())
		if p.ifc.gone {
			words = append(words, "(deleted)")
		}
	}
	if p.table != nil {
		words = append(words, fmt.Sprintf("table %d", p.table.id))
	}
	if p.weight != 1 || p.pref != 0 {
		words = append(words, fmt.Sprintf("weight %d preference %d", p.weight, p.pref))
	}
	return strings.Join(words, " ")
}
