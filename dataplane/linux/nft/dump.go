package nft

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Dump is what the kernel has in our tables, as text that does not depend on how it came about: no handles, no counters,
// names in order, anonymous sets in place. Rules are shown as the kernel's expressions. It is for tests and for support;
// people read `nft list table ip contiv` more easily.
func (b *Backend) Dump() (string, error) {
	if err := b.connect(); err != nil {
		return "", err
	}
	var out strings.Builder
	for _, f := range b.families {
		d := &dumper{l: lister{b.cmd, b.table, f.proto}, anonymous: map[string]string{}}
		if err := d.run(&out, f); err != nil {
			return "", err
		}
	}
	return out.String(), nil
}

type dumper struct {
	l         lister
	anonymous map[string]string // name → elements
	sets      []string
}

func (d *dumper) run(out *strings.Builder, f *family) error {
	present, flags, err := d.l.tableFlags()
	if err != nil || !present {
		return err
	}
	fmt.Fprintf(out, "table v%d %s flags %d\n", f.id, d.l.table, flags)
	if err := d.readSets(); err != nil {
		return err
	}
	var listed []listedChain
	if err := d.l.chains(func(c listedChain) { listed = append(listed, c) }); err != nil {
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

func (d *dumper) chain(c listedChain) (string, error) {
	head := "  chain " + c.name
	if c.hook {
		head += fmt.Sprintf(" type %s hook %d priority %d", c.typ, c.num, c.priority)
	}
	lines := []string{head}
	if err := d.l.rules(c.name, func(r listedRule) { lines = append(lines, d.rule(r)) }); err != nil {
		return "", err
	}
	return strings.Join(lines, "\n    ") + "\n", nil
}

func (d *dumper) readSets() error {
	var list []listedSet
	if err := d.l.sets(func(s listedSet) { list = append(list, s) }); err != nil {
		return err
	}
	for _, s := range list {
		var elems []string
		if err := d.l.elements(s.name, func(e listedElem) { elems = append(elems, e.String()) }); err != nil {
			return err
		}
		slices.Sort(elems)
		if s.flags&unix.NFT_SET_ANONYMOUS != 0 {
			d.anonymous[s.name] = "{" + strings.Join(elems, " ") + "}"
			continue
		}
		head := fmt.Sprintf("  set %s flags %d key %d/%d", s.name, s.flags, s.keyType, s.keyLen)
		d.sets = append(d.sets, strings.Join(append([]string{head}, elems...), "\n    ")+"\n")
	}
	return nil
}

// String is the element's key, with what it maps to.
func (e listedElem) String() string {
	s := hex.EncodeToString(e.key)
	if e.flags&unix.NFT_SET_ELEM_INTERVAL_END != 0 {
		s += " end"
	}
	switch {
	case e.chain != "":
		s = fmt.Sprintf("%q → %s", text(e.key), e.chain)
	case e.code != 0:
		s = fmt.Sprintf("%q → verdict %d", text(e.key), e.code)
	}
	return s
}

func (d *dumper) rule(r listedRule) string {
	var parts []string
	eachAttr(r.exprs, func(_ uint16, e []byte) {
		name, data := text(attr(e, unix.NFTA_EXPR_NAME)), attr(e, unix.NFTA_EXPR_DATA)
		parts = append(parts, name+d.attributes(name, data))
	})
	u := r.udata
	for len(u) >= 2 && len(u) >= 2+int(u[1]) {
		if u[0] == udataComment {
			parts = append(parts, fmt.Sprintf("comment %q", text(u[2:2+int(u[1])])))
		}
		u = u[2+int(u[1]):]
	}
	return strings.Join(parts, "; ")
}

// attributes shows an expression's attributes by number: numbers and keys in hexadecimal, verdicts and sets by name.
func (d *dumper) attributes(name string, data []byte) string {
	if name == "counter" {
		return ""
	}
	var s strings.Builder
	eachAttr(data, func(typ uint16, v []byte) {
		switch {
		case name == "lookup" && typ == unix.NFTA_LOOKUP_SET:
			set := text(v)
			if elems, ok := d.anonymous[set]; ok {
				set = elems
			}
			fmt.Fprintf(&s, " %s", set)
		case name == "log" && typ == unix.NFTA_LOG_PREFIX:
			fmt.Fprintf(&s, " %q", text(v))
		case name == "immediate" && typ == unix.NFTA_IMMEDIATE_DATA && attr(v, unix.NFTA_DATA_VERDICT) != nil:
			verdict := attr(v, unix.NFTA_DATA_VERDICT)
			fmt.Fprintf(&s, " verdict %d %s", int32(be32(attr(verdict, unix.NFTA_VERDICT_CODE))),
				text(attr(verdict, unix.NFTA_VERDICT_CHAIN)))
		default:
			fmt.Fprintf(&s, " %d=%s", typ, hex.EncodeToString(v))
		}
	})
	return s.String()
}
