package policy

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// hooks is a set of hooks.
type hooks uint8

func hooksOf(list ...table.Hook) (s hooks) {
	for _, h := range list {
		s |= 1 << h
	}
	return s
}

const anyHook hooks = 0xff

// compiled is the content of a chain.
type compiled struct {
	programs []wire.Program
	lists    []*list // that the programs use
	targets  []*node // that rules jump to
	skipped  []*node // that rules name, but that have no rules themselves
	sets     []*set
	allowed  hooks // hooks from which packets may enter the chain
	err      error // the chain cannot be programmed
}

// inlinedSet is a set that an address must be in, or must not be in, and that is written into the rules instead of the kernel's sets.
type inlinedSet struct {
	spans wire.Spans
	load  func()
	not   bool
}

// compiler translates the rules of one chain to programs.
type compiler struct {
	wire.Exprs              // of the program being built
	lists      []*list      // of the program being built
	inlined    []inlinedSet // of the program being built
	n          *node
	out        compiled
	*scratch
}

// scratch is memory that the compilers of a family reuse one after the other.
type scratch struct {
	exprs, hash []byte
	slab        []byte // memory for the bytes that programs keep
}

// compile translates the rules of chain n.
func compile(n *node, rules []table.Rule) compiled {
	c := newCompiler(n)
	for i := range rules {
		if err := c.rule(&rules[i]); err != nil && c.out.err == nil {
			c.out.err = fmt.Errorf("rule %d: %w", i+1, err)
		}
	}
	return c.finish()
}

func newCompiler(n *node) *compiler {
	c := &compiler{n: n, scratch: &n.f.scratch}
	c.B = c.scratch.exprs
	c.out.allowed = anyHook
	return c
}

func (c *compiler) finish() compiled {
	c.scratch.exprs = c.B[:0]
	return c.out
}

// rule adds the programs of a rule, usually one. There is none if no packet can match. There are several if the rule has alternatives; each
// of them excludes the packets of those before it, so that no packet passes the actions twice.
func (c *compiler) rule(r *table.Rule) error {
	if err := check(c.n.layer, r); err != nil {
		return err
	}
	target, err := c.target(r)
	if err != nil {
		return err
	}
	c.B, c.lists = c.B[:0], c.lists[:0]
	choices, possible, err := c.match(r)
	if err != nil || !possible || skips(r, target) {
		return err
	}
	return c.expand(choices, ends(r), func() error { return c.actions(r) })
}

// ends reports whether matching packets never reach the rules after this one.
func ends(r *table.Rule) bool {
	return len(r.Actions) > 0 && r.Actions[len(r.Actions)-1].Verb > table.Jump
}

// expand calls leaf for every combination of alternatives, after adding their conditions. Unless the rule ends the processing, each
// combination excludes those before it.
func (c *compiler) expand(choices [][]alternative, ends bool, leaf func() error) error {
	if len(choices) == 0 {
		return leaf()
	}
	at, lists := len(c.B), len(c.lists)
	for i := range choices[0] {
		if c.choose(choices[0], i, ends) {
			if err := c.expand(choices[1:], ends, leaf); err != nil {
				return err
			}
		}
		c.B, c.lists = c.B[:at], c.lists[:lists]
	}
	return nil
}

// emit makes a program of the expressions built so far.
func (c *compiler) emit(comment string) {
	p := wire.Program{Exprs: c.keep(c.B)}
	c.out.lists = append(c.out.lists, c.lists...)
	c.hash = append(append(c.hash[:0], c.B...), comment...) // lists are included by name, which identifies their content
	sum := sha256.Sum256(c.hash)
	copy(p.Hash[:], sum[:])
	p.Udata = c.keep(wire.AppendUserData(c.hash[:0], comment, p.Hash))
	c.out.programs = append(c.out.programs, p)
}

const slabSize = 64 << 10

// keep copies bytes to memory that is not reused.
func (c *compiler) keep(b []byte) []byte {
	if len(b) > cap(c.slab)-len(c.slab) {
		c.slab = make([]byte, 0, max(slabSize, len(b)))
	}
	at := len(c.slab)
	c.slab = append(c.slab, b...)
	return c.slab[at:len(c.slab):len(c.slab)]
}

// match adds the conditions that all must hold, and returns the lists of alternatives. possible is false if no packet can match.
func (c *compiler) match(r *table.Rule) (choices [][]alternative, possible bool, err error) {
	m := &r.Match
	c.iface(unix.NFT_META_IIFNAME, m.InIface)
	c.iface(unix.NFT_META_OIFNAME, m.OutIface)
	if m.CT != 0 {
		c.CT(unix.NFT_CT_STATE)
		c.AnyBit(wire.CTBits(m.CT))
	}
	if m.DNATed {
		c.CT(unix.NFT_CT_STATUS)
		c.AnyBit(wire.StatusDNAT)
	}
	c.protocol(m)
	possible = c.without(c.netSpans(m.NotSrcNets), c.loadSrc) && c.without(c.netSpans(m.NotDstNets), c.loadDst) &&
		c.without(wire.Ports(m.NotSrcPorts), c.loadSrcPort) && c.without(wire.Ports(m.NotDstPorts), c.loadDstPort)
	c.inlined = c.inlined[:0]
	err = errors.Join(
		c.addressSets(m.SrcSets, c.loadSrc, false), c.addressSets(m.DstSets, c.loadDst, false),
		c.addressSets(m.NotSrcSets, c.loadSrc, true), c.addressSets(m.NotDstSets, c.loadDst, true),
		c.notPortSets(m.NotSrcPortSets, true), c.notPortSets(m.NotDstPortSets, false))
	c.icmp(m)
	if m.MidStream {
		c.Payload(unix.NFT_PAYLOAD_TRANSPORT_HEADER, tcpFlagsAt, 1, wire.Reg1)
		c.Bitwise([]byte{tcpFIN | tcpSYN | tcpRST | tcpACK}, []byte{0})
		c.Equal([]byte{tcpSYN}, true)
	}
	if m.MarkMask != 0 {
		c.Meta(unix.NFT_META_MARK, wire.Reg1)
		if m.MarkMask != math.MaxUint32 {
			c.Bitwise(wire.Host32(m.MarkMask), wire.Host32(0))
		}
		c.Equal(wire.Host32(m.Mark), m.MarkNot)
	}
	c.routing(m)
	choices, any, more := c.choices(m)
	return choices, possible && any, errors.Join(err, more)
}

// The offset of TCP's flags, and the relevant flags.
const (
	tcpFlagsAt = 13
	tcpFIN     = 1 << 0
	tcpSYN     = 1 << 1
	tcpRST     = 1 << 2
	tcpACK     = 1 << 4
)

// iface tests an interface's name, or with a trailing '+' its prefix.
func (c *compiler) iface(key uint32, name string) {
	if name == "" || name == "+" {
		return
	}
	c.Meta(key, wire.Reg1)
	if start, ok := strings.CutSuffix(name, "+"); ok {
		c.Equal([]byte(start), false)
	} else {
		c.Equal(ifaceKey(name), false)
	}
}

// ifaceKey returns a complete interface name in the format that nf_tables compares.
func ifaceKey(name string) []byte {
	k := make([]byte, unix.IFNAMSIZ)
	copy(k, name)
	return k
}

func (c *compiler) protocol(m *table.Match) {
	if m.Protocol != 0 {
		c.Meta(unix.NFT_META_L4PROTO, wire.Reg1)
		c.Equal([]byte{m.Protocol}, false)
	}
	if m.NotProtocol != 0 {
		c.Meta(unix.NFT_META_L4PROTO, wire.Reg1)
		c.Equal([]byte{m.NotProtocol}, true)
	}
}

func (c *compiler) loadSrc() { c.address(12, 8) }
func (c *compiler) loadDst() { c.address(16, 24) }

// address loads an address from its offset in the IPv4 or IPv6 header.
func (c *compiler) address(at4, at6 uint32) {
	if c.n.f.ID == table.IPv4 {
		c.Payload(unix.NFT_PAYLOAD_NETWORK_HEADER, at4, 4, wire.Reg1)
	} else {
		c.Payload(unix.NFT_PAYLOAD_NETWORK_HEADER, at6, 16, wire.Reg1)
	}
}

func (c *compiler) loadOrigDst() {
	c.connection(unix.NFT_CT_DST_IP, unix.NFT_CT_DST_IP6, wire.Original)
}
func (c *compiler) loadOrigSrc() {
	c.connection(unix.NFT_CT_SRC_IP, unix.NFT_CT_SRC_IP6, wire.Original)
}
func (c *compiler) loadReplSrc() { c.connection(unix.NFT_CT_SRC_IP, unix.NFT_CT_SRC_IP6, wire.Reply) }

// connection loads an address of the connection in one direction.
func (c *compiler) connection(key4, key6 uint32, d wire.Direction) {
	if c.n.f.ID == table.IPv4 {
		c.CTOf(d, key4)
	} else {
		c.CTOf(d, key6)
	}
}

func (c *compiler) loadSrcPort() { c.port(0, wire.Reg1) }
func (c *compiler) loadDstPort() { c.port(2, wire.Reg1) }

// port loads a port from its offset in the transport header.
func (c *compiler) port(offset, reg uint32) {
	c.Payload(unix.NFT_PAYLOAD_TRANSPORT_HEADER, offset, 2, reg)
}

// set returns a set that a rule names.
func (c *compiler) set(id string, types ...table.SetType) (*set, error) {
	s := c.n.f.set(id)
	c.out.sets = append(c.out.sets, s)
	switch {
	case !s.wanted:
		return nil, fmt.Errorf("there is no set %q; its rule stays closed until there is", id)
	case s.broken != nil:
		return nil, fmt.Errorf("%s is broken: %w", s.Key(), s.broken)
	case !slices.Contains(types, s.spec.Type):
		return nil, fmt.Errorf("set %q has type %d, which cannot be matched in this way", id, s.spec.Type)
	}
	return s, nil
}

func (c *compiler) addressSets(ids []string, load func(), not bool) error {
	for _, id := range ids {
		s, err := c.set(id, table.SetIP, table.SetNet)
		if err != nil {
			return err
		}
		if s.inlined != nil {
			c.inlined = append(c.inlined, inlinedSet{*s.inlined, load, not})
			continue
		}
		load()
		c.Lookup(s.name, not)
	}
	return nil
}

// portSet tests address, protocol and port of the source or destination.
func (c *compiler) portSet(s *set, src, not bool) {
	if src {
		c.loadSrc()
	} else {
		c.loadDst()
	}
	next, offset := uint32(wire.Reg32+wire.AddressBytes(c.n.f.ID)/4), uint32(2)
	if src {
		offset = 0
	}
	c.Meta(unix.NFT_META_L4PROTO, next)
	c.port(offset, next+1)
	c.Lookup(s.name, not)
}

func (c *compiler) notPortSets(ids []string, src bool) error {
	for _, id := range ids {
		s, err := c.set(id, table.SetIPAndPort)
		if err != nil {
			return err
		}
		c.portSet(s, src, true)
	}
	return nil
}

func (c *compiler) icmpType(t uint8, not bool) {
	c.Payload(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 0, 1, wire.Reg1)
	c.Equal([]byte{t}, not)
}

func (c *compiler) icmpCode(code uint8, not bool) {
	c.Payload(unix.NFT_PAYLOAD_TRANSPORT_HEADER, 1, 1, wire.Reg1)
	c.Equal([]byte{code}, not)
}

func (c *compiler) icmp(m *table.Match) {
	if t := m.ICMP; t != nil {
		c.icmpType(t.Type, false)
		if !t.AnyCode {
			c.icmpCode(t.Code, false)
		}
	}
	if t := m.NotICMP; t != nil && t.AnyCode {
		c.icmpType(t.Type, true)
	}
}

// routing adds the conditions that use the routing table.
func (c *compiler) routing(m *table.Match) {
	c.addrType(m.Src, unix.NFTA_FIB_F_SADDR)
	c.addrType(m.Dst, unix.NFTA_FIB_F_DADDR)
	if m.SrcNotOnOut {
		c.FIB(unix.NFT_FIB_RESULT_ADDRTYPE, unix.NFTA_FIB_F_SADDR|unix.NFTA_FIB_F_OIF)
		c.Equal(wire.Host32(unix.RTN_LOCAL), true)
		c.out.allowed &= hooksOf(table.Forward, table.Output, table.Postrouting)
	}
	if m.NoReversePath {
		c.FIB(unix.NFT_FIB_RESULT_OIF, unix.NFTA_FIB_F_SADDR|unix.NFTA_FIB_F_IIF|unix.NFTA_FIB_F_PRESENT)
		c.Equal(wire.Host32(0), false)
		c.out.allowed &= hooksOf(table.Prerouting, table.Input, table.Forward)
	}
}

func (c *compiler) addrType(t table.AddrType, side uint32) {
	if t == table.AddrAny {
		return
	}
	c.FIB(unix.NFT_FIB_RESULT_ADDRTYPE, side)
	c.Equal(wire.Host32(unix.RTN_LOCAL), t == table.AddrNotLocal)
}
