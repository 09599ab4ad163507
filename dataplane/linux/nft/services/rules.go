package services

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/lb"
	"contiv.dev/vswitch/dataplane/linux/nft/wire"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// serviceHook is a base chain of a table of services.
type serviceHook struct {
	name, typ string
	num       uint32
	priority  int32
}

// The chains of services run before policy's chains at the same hooks, and before kube-proxy's: the first translation takes effect. Packets
// that cannot be served are rejected before any translation.
func serviceHooks() []serviceHook {
	const prerouting, output, postrouting = 0, 3, 4 // NF_INET_…
	return []serviceHook{
		{"check-prerouting", "filter", prerouting, -110},
		{"check-output", "filter", output, -110},
		{"nat-prerouting", "nat", prerouting, -105},
		{"nat-output", "nat", output, -105},
		{"nat-postrouting", "nat", postrouting, 95},
	}
}

const chainRefuse = "refuse"

// ruleset builds the rules of one chain. Registers are 32 bits wide: r32(0) … r32(15); an address takes a of them.
type ruleset struct {
	wire.Exprs
	f    wire.Family
	a    uint32
	list []wire.Program
}

func r32(n uint32) uint32 { return wire.Reg32 + n }

func (b *balancer) ruleset() *ruleset { return &ruleset{f: b.f, a: addrRegs(b.f.ID)} }

// emit ends a rule. The comment is shown when the rules are listed.
func (c *ruleset) emit(comment string) {
	p := wire.Program{Exprs: slices.Clone(c.B)}
	sum := sha256.Sum256(append(slices.Clone(c.B), comment...))
	copy(p.Hash[:], sum[:])
	p.Udata = wire.AppendUserData(nil, comment, p.Hash)
	c.list = append(c.list, p)
	c.B = c.B[:0]
}

// staticChains returns the chains that always exist.
func (b *balancer) staticChains() map[string][]wire.Program {
	return map[string][]wire.Program{
		chainRefuse:        b.refuseRules(),
		"check-prerouting": b.checkRules(true),
		"check-output":     b.checkRules(false),
		"nat-prerouting":   b.natRules(true),
		"nat-output":       b.natRules(false),
		"nat-postrouting":  b.masqueradeRules(),
	}
}

func (b *balancer) refuseRules() []wire.Program {
	c := b.ruleset()
	c.Meta(unix.NFT_META_L4PROTO, wire.Reg1)
	c.Equal([]byte{unix.IPPROTO_TCP}, false)
	c.Reject(unix.NFT_REJECT_TCP_RST, 0)
	c.emit("")
	c.Reject(unix.NFT_REJECT_ICMP_UNREACH, c.f.PortUnreachable)
	c.emit("")
	return c.list
}

// checkRules returns rules that reject packets: to frontends without backends, from clients that are not allowed, to ports that a cluster
// IP does not have.
func (b *balancer) checkRules(others bool) []wire.Program {
	c := b.ruleset()
	c.CT(unix.NFT_CT_STATE)
	c.Bitwise(wire.Host32(wire.CTBits(table.CTNew)), wire.Host32(0))
	c.Compare(unix.NFT_CMP_EQ, wire.Host32(0))
	c.ImmediateVerdict(unix.NFT_RETURN, "")
	c.emit("")
	refuse := func() { c.ImmediateVerdict(unix.NFT_GOTO, chainRefuse) }
	drop := func() { c.ImmediateVerdict(wire.CodeDrop, "") }
	in := func(m mapID, notPods bool, then func()) {
		if notPods {
			c.notPods()
		}
		c.loadKey(0)
		c.lookupFrom(c.name(b, m), r32(0), false)
		then()
		c.emit("")
	}
	if others {
		in(mapRejectOutside, true, refuse)
		in(mapDropOutside, true, drop)
	}
	in(mapReject, false, refuse)
	in(mapDrop, false, drop)
	c.loadKey(0)
	c.verdictFrom(c.name(b, mapSources), r32(0))
	c.emit("")
	c.loadKey(0)
	c.lookupFrom(c.name(b, mapClusterIPs), r32(0), false)
	c.lookupFrom(c.name(b, mapFrontends), r32(0), true)
	refuse()
	c.emit("")
	return c.list
}

// natRules returns rules that send new connections to the chain that selects a backend. They look up twice: a packet may have found a group
// that is being replaced by another one (when the service's traffic policy changes). Its elements are gone then, and the second lookup
// finds the new group.
func (b *balancer) natRules(others bool) []wire.Program {
	c := b.ruleset()
	dispatch := func(fronts, pick mapID) {
		c.loadKey(0)
		c.mapFrom(c.name(b, fronts), r32(0), r32(8))
		c.mapFrom(c.name(b, mapCounts), r32(9), r32(11))
		c.verdictFrom(c.name(b, pick), r32(12))
		c.emit(fmt.Sprintf("frontend @%s → group @counts → vmap @%s", c.name(b, fronts), c.name(b, pick)))
	}
	if others {
		c.notPods()
		dispatch(mapOutside, mapPickOutside)
	}
	dispatch(mapFrontends, mapPick)
	dispatch(mapFrontends, mapPick)
	return c.list
}

// masqueradeRules returns rules that masquerade the sender if the reply would otherwise not return through this node. The kind of
// connection follows from its original destination.
func (b *balancer) masqueradeRules() []wire.Program {
	c := b.ruleset()
	c.CT(unix.NFT_CT_STATUS)
	c.Bitwise(wire.Host32(wire.StatusDNAT), wire.Host32(0))
	c.Compare(unix.NFT_CMP_EQ, wire.Host32(0))
	c.ImmediateVerdict(unix.NFT_RETURN, "")
	c.emit("")
	c.loadSaddr(r32(0))
	c.loadDaddr(r32(c.a))
	c.lookupFrom(c.name(b, mapHairpin), r32(0), false)
	c.Masquerade(false, false, wire.NATRandomFully)
	c.emit("")
	for _, kind := range []lb.Masquerade{lb.Always, lb.NotPods, lb.OwnOnly} {
		if kind == lb.NotPods {
			c.notPods()
		}
		if kind == lb.OwnOnly {
			c.FIB(unix.NFT_FIB_RESULT_ADDRTYPE, unix.NFTA_FIB_F_SADDR)
			c.Equal(wire.Host32(unix.RTN_LOCAL), false)
		}
		c.loadOriginalKey()
		c.mapFrom(c.name(b, mapFrontends), r32(0), r32(8))
		c.cmpReg(r32(8), wire.Host32(uint32(kind)), false)
		c.Masquerade(false, false, wire.NATRandomFully)
		c.emit("")
	}
	return c.list
}

// sourcesRules returns rules that drop packets from sources outside the given prefixes.
func (b *balancer) sourcesRules(nets string) []wire.Program {
	c := b.ruleset()
	for text := range strings.SplitSeq(nets, ",") {
		net, err := netip.ParsePrefix(text)
		if err != nil {
			continue // an empty list
		}
		span := wire.SpanOf(net)
		c.loadSaddr(wire.Reg1)
		c.Between(span.First[:wire.AddressBytes(c.f.ID)], span.Last[:wire.AddressBytes(c.f.ID)], false)
		c.ImmediateVerdict(unix.NFT_RETURN, "")
		c.emit("")
	}
	c.ImmediateVerdict(wire.CodeDrop, "")
	c.emit("")
	return c.list
}
