package policy

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/netlink"
)

// Dump returns the kernel's contents of our tables, as text that does not depend on their history: no handles, no counters, names in order,
// anonymous sets inline. Rules are shown as the kernel's expressions. Dump is for tests and for support; the output of `nft list table ip
// contiv` is easier to read.
func (b *Backend) Dump() (string, error) {
	if err := b.view.Connect(); err != nil {
		return "", err
	}
	var out strings.Builder
	for _, f := range b.families {
		d := &dumper{l: b.view.Lister(f.Proto), anonymous: map[string]string{}}
		if err := d.run(&out, f); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

type dumper struct {
	l         wire.Lister
	anonymous map[string]string // name → elements
	sets      []string
}

func (d *dumper) run(out *strings.Builder, f *family) error {
	present, flags, err := d.l.TableFlags()
	if err != nil || !present {
		return err
	}
	fmt.Fprintf(out, "table v%d %s flags %d\n", f.ID, d.l.Table, flags)
	if err := d.readSets(); err != nil {
		return err
	}
	var listed []wire.Chain
	if err := d.l.Chains(func(c wire.Chain) { listed = append(listed, c) }); err != nil {
		return err
	}
	var chains []string
	for _, c := range listed {
		text, err := d.chain(c)
		if err != nil {
			return err
		}
		chains = append(chains, text)
	}
	slices.Sort(d.sets)
	slices.Sort(chains)
	for _, s := range append(d.sets, chains...) {
		out.WriteString(s)
	}
	return nil
}

func (d *dumper) chain(c wire.Chain) (string, error) {
	head := "  chain " + c.Name
	if c.Hook {
		head += fmt.Sprintf(" type %s hook %d priority %d", c.Type, c.Hooknum, c.Priority)
	}
	lines := []string{head}
	if err := d.l.Rules(c.Name, func(r wire.Rule) { lines = append(lines, d.rule(r)) }); err != nil {
		return "", err
	}
	return strings.Join(lines, "\n    ") + "\n", nil
}

func (d *dumper) readSets() error {
	var list []wire.Set
	if err := d.l.Sets(func(s wire.Set) { list = append(list, s) }); err != nil {
		return err
	}
	for _, s := range list {
		var elems []string
		if err := d.l.Elements(s.Name, func(e wire.Elem) { elems = append(elems, e.String()) }); err != nil {
			return err
		}
		slices.Sort(elems)
		if s.Flags&unix.NFT_SET_ANONYMOUS != 0 {
			d.anonymous[s.Name] = "{" + strings.Join(elems, " ") + "}"
			continue
		}
		head := fmt.Sprintf("  set %s flags %d key %d/%d", s.Name, s.Flags, s.KeyType, s.KeyLen)
		d.sets = append(d.sets, strings.Join(append([]string{head}, elems...), "\n    ")+"\n")
	}
	return nil
}

func (d *dumper) rule(r wire.Rule) string {
	var parts []string
	wire.EachAttr(r.Exprs, func(_ uint16, e []byte) {
		name, data := netlink.Text(wire.Attr(e, unix.NFTA_EXPR_NAME)), wire.Attr(e, unix.NFTA_EXPR_DATA)
		parts = append(parts, name+d.attributes(name, data))
	})
	u := r.UserData
	for len(u) >= 2 && len(u) >= 2+int(u[1]) {
		if u[0] == wire.UserDataComment {
			parts = append(parts, fmt.Sprintf("comment %q", netlink.Text(u[2:2+int(u[1])])))
		}
		u = u[2+int(u[1]):]
	}
	return strings.Join(parts, "; ")
}

// attributes returns an expression's attributes as text, by number: numbers and keys in hexadecimal, verdicts and sets by name.
func (d *dumper) attributes(name string, data []byte) string {
	if name == "counter" {
		return ""
	}
	var s strings.Builder
	wire.EachAttr(data, func(typ uint16, v []byte) {
		switch {
		case name == "lookup" && typ == unix.NFTA_LOOKUP_SET:
			set := netlink.Text(v)
			if elems, ok := d.anonymous[set]; ok {
				set = elems
			}
			fmt.Fprintf(&s, " %s", set)
		case name == "log" && typ == unix.NFTA_LOG_PREFIX:
			fmt.Fprintf(&s, " %q", netlink.Text(v))
		case name == "immediate" && typ == unix.NFTA_IMMEDIATE_DATA && wire.Attr(v, unix.NFTA_DATA_VERDICT) != nil:
			verdict := wire.Attr(v, unix.NFTA_DATA_VERDICT)
			fmt.Fprintf(&s, " verdict %d %s", int32(wire.Uint32(wire.Attr(verdict, unix.NFTA_VERDICT_CODE))),
				netlink.Text(wire.Attr(verdict, unix.NFTA_VERDICT_CHAIN)))
		default:
			fmt.Fprintf(&s, " %d=%s", typ, hex.EncodeToString(v))
		}
	})
	return s.String()
}
