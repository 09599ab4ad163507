package nft

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"golang.org/x/sys/unix"
)

// list is a named constant set that holds a list of nets or ports which rules have. Its name stands for what it holds. The kernel lets
// nothing change it while rules use it.
type list struct {
	name    string
	typ     uint32
	spans   spans
	users   int   // live chains with it
	user    *node // one of them, to blame
	present bool  // in the kernel
}

const (
	listPrefix = "list-"
	listFlags  = unix.NFT_SET_CONSTANT | unix.NFT_SET_INTERVAL
)

func listName(typ uint32, s spans) string {
	b := make([]byte, 0, 8+len(s.list)*2*s.size)
	b = binary.BigEndian.AppendUint32(b, typ)
	for i := range s.list {
		b = append(append(b, s.list[i].first[:s.size]...), s.list[i].last[:s.size]...)
	}
	sum := sha256.Sum256(b)
	return listPrefix + hex.EncodeToString(sum[:10])
}

// list is the list that holds these spans, made if it is not known.
func (f *family) list(typ uint32, s spans) *list {
	name := listName(typ, s)
	l := f.lists[name]
	if l == nil {
		l = &list{name: name, typ: typ, spans: s}
		f.lists[name] = l
		f.dirtyLists[l] = struct{}{}
	}
	return l
}

// useLists notes which lists a node's content has; programs is nil for a node that packets do not get to.
func (n *node) useLists(programs []program) {
	var now map[*list]struct{}
	for i := range programs {
		for _, l := range programs[i].lists {
			if now == nil {
				now = map[*list]struct{}{}
			}
			now[l] = struct{}{}
		}
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

// newList makes a list with all that it holds.
func (b *batch) newList(f *family, l *list) {
	b.begin(f, unix.NFT_MSG_NEWSET, unix.NLM_F_CREATE|unix.NLM_F_EXCL, l.user)
	b.str(unix.NFTA_SET_NAME, l.name)
	b.u32(unix.NFTA_SET_FLAGS, listFlags)
	b.u32(unix.NFTA_SET_KEY_TYPE, l.typ)
	b.u32(unix.NFTA_SET_KEY_LEN, uint32(l.spans.size))
	b.sets++
	b.u32(unix.NFTA_SET_ID, b.sets)
	b.end()
	e := b.elements(f, unix.NFT_MSG_NEWSETELEM, l.name, l.user)
	for i := range l.spans.list {
		e.span(l.spans, &l.spans.list[i])
	}
	e.close()
	b.writes++
}

// holds reports whether these bounds, as the kernel lists them, are what the list's name stands for.
func (ls listedSet) holds(bounds []bound) bool {
	s := spans{size: int(ls.keyLen)}
	ok := eachSpan(bounds, s.size, func(one span) { s.list = append(s.list, one) })
	return ok && ls.flags == listFlags && bytes.Equal([]byte(listName(ls.keyType, s)), []byte(ls.name))
}
