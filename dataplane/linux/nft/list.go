package nft

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// What the kernel has, as it lists it. Byte slices are only valid during the call that hands them over.

type listedChain struct {
	name     string
	hook     bool
	num      uint32
	priority int32
	typ      string
}

type listedRule struct {
	exprs, udata []byte
}

type listedSet struct {
	name                             string
	flags, keyType, keyLen, dataType uint32
}

type listedElem struct {
	key   []byte
	flags uint32
	data  []byte // of a map of values
	code  int32  // of a verdict map
	chain string // of a verdict map
}

// asker asks the kernel; *conn is one.
type asker interface {
	get(typ int, flags uint16, family uint8, fill func(*buffer), each func(attrs []byte)) error
}

// lister lists one family's table.
type lister struct {
	c     asker
	table string
	proto uint8
}

// tableFlags reports whether the table is there, and its flags.
func (l lister) tableFlags() (present bool, flags uint32, err error) {
	err = l.c.get(unix.NFT_MSG_GETTABLE, 0, l.proto, func(w *buffer) { w.str(unix.NFTA_TABLE_NAME, l.table) },
		func(a []byte) { present, flags = true, be32(attr(a, unix.NFTA_TABLE_FLAGS)) })
	if errors.Is(err, unix.ENOENT) {
		return false, 0, nil
	}
	return present, flags, l.wrap("table", err)
}

func (l lister) wrap(what string, err error) error {
	if errors.Is(err, errDumpChanged) {
		return nil // what changed is elsewhere, or the generation and the events will tell
	}
	if err != nil {
		return fmt.Errorf("list %s of nf_tables table %s: %w", what, l.table, err)
	}
	return nil
}

// maxListings bounds how often a listing is begun again.
const maxListings = 50

// chains lists the table's chains. The kernel can only list those of all tables, and may leave some out when those change
// meanwhile: then it is asked again.
func (l lister) chains(each func(listedChain)) error {
	for range maxListings {
		var list []listedChain
		err := l.c.get(unix.NFT_MSG_GETCHAIN, unix.NLM_F_DUMP, l.proto, nil, func(a []byte) {
			if c, table := chainOf(a); table == l.table {
				list = append(list, c)
			}
		})
		if errors.Is(err, errDumpChanged) {
			continue
		}
		for _, c := range list {
			each(c)
		}
		return l.wrap("chains", err)
	}
	return fmt.Errorf("list chains of nf_tables: %w", errDumpChanged)
}

func chainOf(a []byte) (c listedChain, table string) {
	eachAttr(a, func(typ uint16, v []byte) {
		switch typ {
		case unix.NFTA_CHAIN_TABLE:
			table = text(v)
		case unix.NFTA_CHAIN_NAME:
			c.name = text(v)
		case unix.NFTA_CHAIN_TYPE:
			c.typ = text(v)
		case unix.NFTA_CHAIN_HOOK:
			c.hook, c.num = true, be32(attr(v, unix.NFTA_HOOK_HOOKNUM))
			c.priority = int32(be32(attr(v, unix.NFTA_HOOK_PRIORITY)))
		}
	})
	return c, table
}

// rules lists the rules of a chain. Chain by chain, because the kernel begins again with the first rule for every some 60 that
// it lists.
func (l lister) rules(chain string, each func(listedRule)) error {
	return l.wrap("rules", l.listRules(chain, each))
}

// listRules is rules, and returns errDumpChanged if the table has changed meanwhile.
func (l lister) listRules(chain string, each func(listedRule)) error {
	return l.c.get(unix.NFT_MSG_GETRULE, unix.NLM_F_DUMP, l.proto,
		func(w *buffer) {
			w.str(unix.NFTA_RULE_TABLE, l.table)
			w.str(unix.NFTA_RULE_CHAIN, chain)
		},
		func(a []byte) {
			var r listedRule
			eachAttr(a, func(typ uint16, v []byte) {
				switch typ {
				case unix.NFTA_RULE_EXPRESSIONS:
					r.exprs = v
				case unix.NFTA_RULE_USERDATA:
					r.udata = v
				}
			})
			each(r)
		})
}

func (l lister) sets(each func(listedSet)) error {
	err := l.c.get(unix.NFT_MSG_GETSET, unix.NLM_F_DUMP, l.proto,
		func(w *buffer) { w.str(unix.NFTA_SET_TABLE, l.table) },
		func(a []byte) {
			var s listedSet
			eachAttr(a, func(typ uint16, v []byte) {
				switch typ {
				case unix.NFTA_SET_NAME:
					s.name = text(v)
				case unix.NFTA_SET_FLAGS:
					s.flags = be32(v)
				case unix.NFTA_SET_KEY_TYPE:
					s.keyType = be32(v)
				case unix.NFTA_SET_KEY_LEN:
					s.keyLen = be32(v)
				case unix.NFTA_SET_DATA_TYPE:
					s.dataType = be32(v)
				}
			})
			each(s)
		})
	return l.wrap("sets", err)
}

func (l lister) elements(set string, each func(listedElem)) error {
	err := l.c.get(unix.NFT_MSG_GETSETELEM, unix.NLM_F_DUMP, l.proto,
		func(w *buffer) {
			w.str(unix.NFTA_SET_ELEM_LIST_TABLE, l.table)
			w.str(unix.NFTA_SET_ELEM_LIST_SET, set)
		},
		func(a []byte) {
			eachAttr(attr(a, unix.NFTA_SET_ELEM_LIST_ELEMENTS), func(_ uint16, v []byte) { each(elementOf(v)) })
		})
	return l.wrap("elements of set "+set, err)
}

func elementOf(b []byte) (e listedElem) {
	eachAttr(b, func(typ uint16, v []byte) {
		switch typ {
		case unix.NFTA_SET_ELEM_KEY:
			e.key = attr(v, unix.NFTA_DATA_VALUE)
		case unix.NFTA_SET_ELEM_FLAGS:
			e.flags = be32(v)
		case unix.NFTA_SET_ELEM_DATA:
			e.data = attr(v, unix.NFTA_DATA_VALUE)
			verdict := attr(v, unix.NFTA_DATA_VERDICT)
			e.code = int32(be32(attr(verdict, unix.NFTA_VERDICT_CODE)))
			e.chain = text(attr(verdict, unix.NFTA_VERDICT_CHAIN))
		}
	})
	return e
}
