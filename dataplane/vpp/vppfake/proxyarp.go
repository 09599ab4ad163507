package vppfake

import (
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/arp"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/interface_types"
)

func fibProto(fam int) fib_types.FibPathNhProto { return fib_types.FibPathNhProto(fam) }

// proxyRange is a range of addresses for which VPP answers ARP on the interfaces where proxy ARP is enabled.
type proxyRange struct {
	table    *fib
	low, top netip.Addr
}

func registerProxyARP(t *table) {
	on(t, writes, proxyAddDel)
	dump(t, func(c *call, _ *arp.ProxyArpDump, send func(*arp.ProxyArpDetails)) {
		for _, p := range c.ip.proxies {
			send(&arp.ProxyArpDetails{Proxy: arp.ProxyArp{TableID: p.table.id, Low: p.low.As4(), Hi: p.top.As4()}})
		}
	})
	on(t, writes, func(c *call, q *arp.ProxyArpIntfcEnableDisable) *arp.ProxyArpIntfcEnableDisableReply {
		i := c.iface(q.SwIfIndex)
		if i == nil {
			return &arp.ProxyArpIntfcEnableDisableReply{Retval: rvInvalidSwIfIndex}
		}
		if q.Enable {
			c.ip.proxyOn[i.index] = true
		} else {
			delete(c.ip.proxyOn, i.index)
		}
		return &arp.ProxyArpIntfcEnableDisableReply{}
	})
	dump(t, func(c *call, _ *arp.ProxyArpIntfcDump, send func(*arp.ProxyArpIntfcDetails)) {
		for _, index := range sortedKeys(c.ip.proxyOn) {
			send(&arp.ProxyArpIntfcDetails{SwIfIndex: index})
		}
	})
}

func proxyAddDel(c *call, q *arp.ProxyArpAddDel) *arp.ProxyArpAddDelReply {
	t := c.ip.tables[ip4][q.Proxy.TableID]
	if t == nil {
		return &arp.ProxyArpAddDelReply{Retval: rvNoSuchFIB}
	}
	p := proxyRange{table: t, low: netip.AddrFrom4(q.Proxy.Low), top: netip.AddrFrom4(q.Proxy.Hi)}
	n := slices.Index(c.ip.proxies, p)
	switch {
	case q.IsAdd && n < 0:
		c.ip.proxies = append(c.ip.proxies, p)
	case !q.IsAdd && n < 0:
		return &arp.ProxyArpAddDelReply{Retval: rvNoSuchEntry}
	case !q.IsAdd:
		c.ip.proxies = slices.Delete(c.ip.proxies, n, n+1)
	}
	return &arp.ProxyArpAddDelReply{}
}

func dumpProxyARP(st *state, d *dumper) {
	for _, p := range st.ip.proxies {
		d.add("proxy-arp vrf %d %s - %s", p.table.id, p.low, p.top)
	}
	for index := range st.ip.proxyOn {
		d.add("proxy-arp on %s", st.iface(interface_types.InterfaceIndex(index)).label())
	}
}
