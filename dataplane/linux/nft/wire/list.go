package wire

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/netlink"
)

// The kernel's objects, as it lists them. Byte slices are valid only during the callback that receives them.

type Chain struct {
	Name     string
	Hook     bool
	Hooknum  uint32
	Priority int32
	Type     string
	Drops    bool // the policy of a base chain
}

type Rule struct {
	Handle          uint64
	Exprs, UserData []byte
}

type Set struct {
	Name                             string
	Flags, KeyType, KeyLen, DataType uint32
}

type Elem struct {
	Key   []byte
	Flags uint32
	Value []byte // of a map of values
	Code  int32  // of a verdict map
	Chain string // of a verdict map
}

// Asker sends requests to the kernel; *Conn implements it.
type Asker interface {
	Get(typ int, flags uint16, family uint8, fill func(*Buffer), each func(attrs []byte)) error
}

// Lister lists one family's table.
type Lister struct {
	c     Asker
	Table string
	proto uint8
}

// NewLister returns a Lister of a table that sends its requests to c.
func NewLister(c Asker, table string, proto uint8) Lister { return Lister{c, table, proto} }

// Tables lists the names of a family's tables. If tables change meanwhile, the listing is repeated.
func Tables(c Asker, proto uint8) ([]string, error) {
	for range MaxListings {
		var names []string
		err := c.Get(unix.NFT_MSG_GETTABLE, unix.NLM_F_DUMP, proto, nil, func(a []byte) {
			names = append(names, netlink.Text(Attr(a, unix.NFTA_TABLE_NAME)))
		})
		if err == nil {
			return names, nil
		}
		if !errors.Is(err, ErrDumpChanged) {
			return nil, fmt.Errorf("list tables of nf_tables: %w", err)
		}
	}
	return nil, fmt.Errorf("list tables of nf_tables: %w", ErrDumpChanged)
}

// TableFlags reports whether the table exists, and its flags.
func (l Lister) TableFlags() (present bool, flags uint32, err error) {
	err = l.c.Get(unix.NFT_MSG_GETTABLE, 0, l.proto, func(w *Buffer) { w.String(unix.NFTA_TABLE_NAME, l.Table) },
		func(a []byte) { present, flags = true, Uint32(Attr(a, unix.NFTA_TABLE_FLAGS)) })
	if errors.Is(err, unix.ENOENT) {
		return false, 0, nil
	}
	return present, flags, l.wrap("table", err)
}

func (l Lister) wrap(what string, err error) error {
	if errors.Is(err, ErrDumpChanged) {
		return nil // the change is elsewhere, or the generation and the events will show it
	}
	if err != nil {
		return fmt.Errorf("list %s of nf_tables table %s: %w", what, l.Table, err)
	}
	return nil
}

// MaxListings limits how often a listing is restarted.
const MaxListings = 50

// Chains lists the table's chains. The kernel can only list those of all tables, and may leave some out if chains change meanwhile: then
// the listing is repeated.
func (l Lister) Chains(each func(Chain)) error {
	return ChainsOf(l.c, l.proto, func(table string, c Chain) {
		if table == l.Table {
			each(c)
		}
	})
}

// ChainsOf lists the chains of all tables of a family.
func ChainsOf(c Asker, proto uint8, each func(table string, c Chain)) error {
	for range MaxListings {
		var list []Chain
		var tables []string
		err := c.Get(unix.NFT_MSG_GETCHAIN, unix.NLM_F_DUMP, proto, nil, func(a []byte) {
			chain, table := chainOf(a)
			list, tables = append(list, chain), append(tables, table)
		})
		if errors.Is(err, ErrDumpChanged) {
			continue
		}
		if err != nil {
			return fmt.Errorf("list chains of nf_tables: %w", err)
		}
		for i, chain := range list {
			each(tables[i], chain)
		}
		return nil
	}
	return fmt.Errorf("list chains of nf_tables: %w", ErrDumpChanged)
}

// Chain reads one chain; found is false if it does not exist.
func (l Lister) Chain(name string) (c Chain, found bool, err error) {
	err = l.c.Get(unix.NFT_MSG_GETCHAIN, 0, l.proto, func(w *Buffer) {
		w.String(unix.NFTA_CHAIN_TABLE, l.Table)
		w.String(unix.NFTA_CHAIN_NAME, name)
	}, func(a []byte) {
		c, _ = chainOf(a)
		found = true
	})
	if errors.Is(err, unix.ENOENT) {
		return Chain{}, false, nil
	}
	return c, found, l.wrap("chain "+name, err)
}

func chainOf(a []byte) (c Chain, table string) {
	EachAttr(a, func(typ uint16, v []byte) {
		switch typ {
		case unix.NFTA_CHAIN_TABLE:
			table = netlink.Text(v)
		case unix.NFTA_CHAIN_NAME:
			c.Name = netlink.Text(v)
		case unix.NFTA_CHAIN_TYPE:
			c.Type = netlink.Text(v)
		case unix.NFTA_CHAIN_HOOK:
			c.Hook, c.Hooknum = true, Uint32(Attr(v, unix.NFTA_HOOK_HOOKNUM))
			c.Priority = int32(Uint32(Attr(v, unix.NFTA_HOOK_PRIORITY)))
		case unix.NFTA_CHAIN_POLICY:
			c.Drops = Uint32(v) == CodeDrop
		}
	})
	return c, table
}

// Rules lists the rules of a chain. Rules are listed chain by chain, because the kernel starts over from the first rule after about every
// 60 listed rules.
func (l Lister) Rules(chain string, each func(Rule)) error {
	return l.wrap("rules", l.ListRules(chain, each))
}

// ListRules is like Rules, but returns ErrDumpChanged if the table has changed meanwhile.
func (l Lister) ListRules(chain string, each func(Rule)) error {
	return l.c.Get(unix.NFT_MSG_GETRULE, unix.NLM_F_DUMP, l.proto,
		func(w *Buffer) {
			w.String(unix.NFTA_RULE_TABLE, l.Table)
			w.String(unix.NFTA_RULE_CHAIN, chain)
		},
		func(a []byte) {
			var r Rule
			EachAttr(a, func(typ uint16, v []byte) {
				switch typ {
				case unix.NFTA_RULE_HANDLE:
					if len(v) == 8 {
						r.Handle = binary.BigEndian.Uint64(v)
					}
				case unix.NFTA_RULE_EXPRESSIONS:
					r.Exprs = v
				case unix.NFTA_RULE_USERDATA:
					r.UserData = v
				}
			})
			each(r)
		})
}

func (l Lister) Sets(each func(Set)) error {
	err := l.c.Get(unix.NFT_MSG_GETSET, unix.NLM_F_DUMP, l.proto,
		func(w *Buffer) { w.String(unix.NFTA_SET_TABLE, l.Table) },
		func(a []byte) {
			var s Set
			EachAttr(a, func(typ uint16, v []byte) {
				switch typ {
				case unix.NFTA_SET_NAME:
					s.Name = netlink.Text(v)
				case unix.NFTA_SET_FLAGS:
					s.Flags = Uint32(v)
				case unix.NFTA_SET_KEY_TYPE:
					s.KeyType = Uint32(v)
				case unix.NFTA_SET_KEY_LEN:
					s.KeyLen = Uint32(v)
				case unix.NFTA_SET_DATA_TYPE:
					s.DataType = Uint32(v)
				}
			})
			each(s)
		})
	return l.wrap("sets", err)
}

func (l Lister) Elements(set string, each func(Elem)) error {
	err := l.c.Get(unix.NFT_MSG_GETSETELEM, unix.NLM_F_DUMP, l.proto,
		func(w *Buffer) {
			w.String(unix.NFTA_SET_ELEM_LIST_TABLE, l.Table)
			w.String(unix.NFTA_SET_ELEM_LIST_SET, set)
		},
		func(a []byte) {
			EachAttr(Attr(a, unix.NFTA_SET_ELEM_LIST_ELEMENTS), func(_ uint16, v []byte) { each(elementOf(v)) })
		})
	return l.wrap("elements of set "+set, err)
}

func elementOf(b []byte) (e Elem) {
	EachAttr(b, func(typ uint16, v []byte) {
		switch typ {
		case unix.NFTA_SET_ELEM_KEY:
			e.Key = Attr(v, unix.NFTA_DATA_VALUE)
		case unix.NFTA_SET_ELEM_FLAGS:
			e.Flags = Uint32(v)
		case unix.NFTA_SET_ELEM_DATA:
			e.Value = Attr(v, unix.NFTA_DATA_VALUE)
			verdict := Attr(v, unix.NFTA_DATA_VERDICT)
			e.Code = int32(Uint32(Attr(verdict, unix.NFTA_VERDICT_CODE)))
			e.Chain = netlink.Text(Attr(verdict, unix.NFTA_VERDICT_CHAIN))
		}
	})
	return e
}

// String returns the element's key, with the value that it maps to.
func (e Elem) String() string {
	s := hex.EncodeToString(e.Key)
	if e.Flags&unix.NFT_SET_ELEM_INTERVAL_END != 0 {
		s += " end"
	}
	switch {
	case e.Chain != "":
		s = fmt.Sprintf("%q → %s", netlink.Text(e.Key), e.Chain)
	case e.Code != 0:
		s = fmt.Sprintf("%q → verdict %d", netlink.Text(e.Key), e.Code)
	}
	return s
}
