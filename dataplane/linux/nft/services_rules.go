package nft

import (
	"crypto/sha256"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"contiv.dev/vswitch/dataplane/linux/balance"
	"contiv.dev/vswitch/dataplane/linux/table"
)

// serviceHook is a base chain of a table of services.
type serviceHook struct {
	name, typ string
	num       uint32
	priority  int32
}

// Services come before policy's chains of the same hooks, and before kube-proxy's: who translates first wins. What cannot be
// served is refused before anything is translated.
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
	exprs
	f    *family
	a    uint32
	list []program
}

func r32(n uint32) uint32 { return reg32 + n }

func (b *balancer) ruleset() *ruleset { return &ruleset{f: b.f, a: addrRegs(b.f.id)} }

// emit ends a rule. The comment is for people who list it.
func (c *ruleset) emit(comment string) {
	p := program{exprs: slices.Clone(c.b)}
	sum := sha256.Sum256(append(slices.Clone(c.b), comment...))
	copy(p.hash[:], sum[:])
	p.udata = appendUserData(nil, comment, p.hash)
	c.list = append(c.list, p)
	c.b = c.b[:0]
}

// staticChains are the chains that are always there.
func (b *balancer) staticChains() map[string][]program {
	return map[string][]program{
		chainRefuse:        b.refuseRules(),
		"check-prerouting": b.checkRules(true),
		"check-output":     b.checkRules(false),
		"nat-prerouting":   b.natRules(true),
		"nat-output":       b.natRules(false),
		"nat-postrouting":  b.masqueradeRules(),
	}
}

func (b *balancer) refuseRules() []program {
	c := b.ruleset()
	c.meta(unix.NFT_META_L4PROTO, reg1)
	c.equal([]byte{unix.IPPROTO_TCP}, false)
	c.reject(unix.NFT_REJECT_TCP_RST, 0)
	c.emit("")
	c.reject(unix.NFT_REJECT_ICMP_UNREACH, c.f.portUnreachable)
	c.emit("")
	return c.list
}

// checkRules are what refuses: frontends without backends, clients from elsewhere, ports that a cluster IP does not have.
func (b *balancer) checkRules(others bool) []program {
	c := b.ruleset()
	c.ct(unix.NFT_CT_STATE)
	c.bitwise(host32(ctBits(table.CTNew)), host32(0))
	c.cmp(unix.NFT_CMP_EQ, host32(0))
	c.immediateVerdict(unix.NFT_RETURN, "")
	c.emit("")
	refuse := func() { c.immediateVerdict(unix.NFT_GOTO, chainRefuse) }
	drop := func() { c.immediateVerdict(codeDrop, "") }
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

// natRules send new connections to the chain that draws a backend. They look twice: a packet that has found a group which just
// then gives way to another (as the service's traffic policy changes) finds no more of the one, and finds the other.
func (b *balancer) natRules(others bool) []program {
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

// masqueradeRules hide the sender behind the node where the answer would not come back this way otherwise. What kind of
// connection it is shows by where it was made to.
func (b *balancer) masqueradeRules() []program {
	c := b.ruleset()
	c.ct(unix.NFT_CT_STATUS)
	c.bitwise(host32(ipsDst), host32(0))
	c.cmp(unix.NFT_CMP_EQ, host32(0))
	c.immediateVerdict(unix.NFT_RETURN, "")
	c.emit("")
	c.loadSaddr(r32(0))
	c.loadDaddr(r32(c.a))
	c.lookupFrom(c.name(b, mapHairpin), r32(0), false)
	c.masquerade(false, false, natRandomFully)
	c.emit("")
	for _, kind := range []balance.Masquerade{balance.Always, balance.NotPods, balance.OwnOnly} {
		if kind == balance.NotPods {
			c.notPods()
		}
		if kind == balance.OwnOnly {
			c.fib(unix.NFT_FIB_RESULT_ADDRTYPE, unix.NFTA_FIB_F_SADDR)
			c.equal(host32(unix.RTN_LOCAL), false)
		}
		c.loadOriginalKey()
		c.mapFrom(c.name(b, mapFrontends), r32(0), r32(8))
		c.cmpReg(r32(8), host32(uint32(kind)), false)
		c.masquerade(false, false, natRandomFully)
		c.emit("")
	}
	return c.list
}

// sourcesRules drop what does not come from one of the nets.
func (b *balancer) sourcesRules(nets string) []program {
	c := b.ruleset()
	for text := range strings.SplitSeq(nets, ",") {
		net, err := netip.ParsePrefix(text)
		if err != nil {
			continue // no net at all
		}
		span := prefixSpan(net)
		c.loadSaddr(reg1)
		c.between(span.first[:addressBytes(c.f.id)], span.last[:addressBytes(c.f.id)], false)
		c.immediateVerdict(unix.NFT_RETURN, "")
		c.emit("")
	}
	c.immediateVerdict(codeDrop, "")
	c.emit("")
	return c.list
}
