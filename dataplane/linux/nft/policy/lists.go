package policy

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
)

// list is a named constant set that holds a list of prefixes or ports of rules. Its name identifies its content. The kernel allows no
// change while rules use it.
type list struct {
	name    string
	typ     uint32
	spans   wire.Spans
	users   int   // number of live chains that use it
	user    *node // one of them, as the object of the list's messages
	present bool  // in the kernel
}

const (
	listPrefix = "list-"
	listFlags  = unix.NFT_SET_CONSTANT | unix.NFT_SET_INTERVAL
)

func listName(typ uint32, s wire.Spans) string {
	b := make([]byte, 0, 8+len(s.List)*2*s.Size)
	b = binary.BigEndian.AppendUint32(b, typ)
	for i := range s.List {
		b = append(append(b, s.List[i].First[:s.Size]...), s.List[i].Last[:s.Size]...)
	}
	sum := sha256.Sum256(b)
	return listPrefix + hex.EncodeToString(sum[:10])
}

// list returns the list with these spans, and creates it if it does not exist.
func (f *family) list(typ uint32, s wire.Spans) *list {
	name := listName(typ, s)
	l := f.lists[name]
	if l == nil {
		l = &list{name: name, typ: typ, spans: s}
		f.lists[name] = l
		f.dirtyLists[l] = struct{}{}
	}
	return l
}

// useLists records the lists that a node's content uses; none for a node that packets do not reach.
func (n *node) useLists(lists []*list) {
	var now map[*list]struct{}
	for _, l := range lists {
		if now == nil {
			now = map[*list]struct{}{}
		}
		now[l] = struct{}{}
	}
	for l := range now {
		if _, had := n.lists[l]; !had {
			l.users++
			l.user = n
			n.f.dirtyLists[l] = struct{}{}
		}
	}
	for l := range n.lists {
		if _, has := now[l]; !has {
			l.users--
			n.f.dirtyLists[l] = struct{}{}
		}
	}
	n.lists = now
}

// newList adds the messages that create a list with all of its content.
func newList(b *wire.Batch, f *family, l *list) {
	b.Begin(f.Proto, unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE|unix.NLM_F_EXCL, l.user)
	b.String(unix.NFTA_SET_NAME, l.name)
	b.Uint32(unix.NFTA_SET_FLAGS, listFlags)
	b.Uint32(unix.NFTA_SET_KEY_TYPE, l.typ)
	b.Uint32(unix.NFTA_SET_KEY_LEN, uint32(l.spans.Size))
	b.Sets++
	b.Uint32(unix.NFTA_SET_ID, b.Sets)
	b.End()
	e := b.Elements(f.Proto, unix.NFT_MSG_NEWSETELEM, l.name, l.user)
	for i := range l.spans.List {
		e.Span(l.spans, &l.spans.List[i])
	}
	e.Close()
	b.Writes++
}

// holds reports whether these bounds, which the kernel listed, match the list's name.
func holds(ls wire.Set, bounds []bound) bool {
	s := wire.Spans{Size: int(ls.KeyLen)}
	ok := eachSpan(bounds, s.Size, func(one wire.Span) { s.List = append(s.List, one) })
	return ok && ls.Flags == listFlags && bytes.Equal([]byte(listName(ls.KeyType, s)), []byte(ls.Name))
}
