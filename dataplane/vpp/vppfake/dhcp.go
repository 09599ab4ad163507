package vppfake

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"go.fd.io/govpp/binapi/dhcp"
	"go.fd.io/govpp/binapi/interface_types"
	"go.fd.io/govpp/binapi/ip_types"
)

// dhcpClient is the DHCP client of an interface. VPP keys it by sw_if_index: it stays when the interface is deleted.
type dhcpClient struct {
	ifx     uint32
	config  dhcp.DHCPClient
	session *session // the only session that receives its events
	lease   netip.Prefix
	gateway netip.Addr
}

func registerDHCP(t *table) {
	on(t, writes, dhcpConfig)
	dump(t, func(c *call, _ *dhcp.DHCPClientDump, send func(*dhcp.DHCPClientDetails)) {
		for _, client := range c.dhcp {
			send(&dhcp.DHCPClientDetails{Client: client.config, Lease: client.details(c.state)})
		}
	})
	event[dhcp.DHCPComplEvent](t)
}

func (st *state) dhcpClient(ifx uint32) int {
	return slices.IndexFunc(st.dhcp, func(c *dhcpClient) bool { return c.ifx == ifx })
}

func dhcpConfig(c *call, q *dhcp.DHCPClientConfig) *dhcp.DHCPClientConfigReply {
	i := c.iface(q.Client.SwIfIndex)
	if i == nil {
		return &dhcp.DHCPClientConfigReply{Retval: rvInvalidSwIfIndex}
	}
	at := c.dhcpClient(i.index)
	switch {
	case q.IsAdd == (at >= 0):
		return &dhcp.DHCPClientConfigReply{Retval: rvInvalidValue}
	case q.IsAdd:
		config := q.Client
		config.ID = slices.Clone(config.ID)
		c.dhcp = append(c.dhcp, &dhcpClient{ifx: i.index, config: config, session: c.session})
	default:
		c.releaseLease(c.dhcp[at])
		c.dhcp = slices.Delete(c.dhcp, at, at+1)
	}
	return &dhcp.DHCPClientConfigReply{}
}

// details returns the details of the lease. VPP leaves the family of addresses at 0, which is IPv4.
func (d *dhcpClient) details(st *state) dhcp.DHCPLease {
	l := dhcp.DHCPLease{SwIfIndex: interface_types.InterfaceIndex(d.ifx), Hostname: d.config.Hostname}
	if i := st.iface(interface_types.InterfaceIndex(d.ifx)); i != nil && i.up {
		l.HostMac = i.hw.mac // set after the client has sent a packet
	}
	if d.lease.IsValid() {
		l.State, l.MaskWidth = dhcp.DHCP_CLIENT_STATE_API_BOUND, uint8(d.lease.Bits())
		l.HostAddress.Un = ip_types.AddressUnionIP4(d.lease.Addr().As4())
	}
	if d.gateway.IsValid() {
		l.RouterAddress.Un = ip_types.AddressUnionIP4(d.gateway.As4())
	}
	return l
}

// releaseLease removes a client's address and default route.
func (st *state) releaseLease(d *dhcpClient) {
	if i := st.iface(interface_types.InterfaceIndex(d.ifx)); i != nil && d.lease.IsValid() {
		st.delAddress(i, d.lease.Addr(), d.lease.Bits())
		if d.gateway.IsValid() {
			via := viaInterface(i, ip4, d.gateway)
			i.ip[ip4].table.removePaths(netip.PrefixFrom(unspecified(ip4), 0), st.ip.sourceCalled("DHCP"), []path{via})
		}
	}
	d.lease, d.gateway = netip.Prefix{}, netip.Addr{}
}

// Lease acts as the DHCP server behind an interface, given by name or tag: its client gets the address and, if it is valid, the default
// gateway. The zero Prefix ends the lease, which VPP does not report.
func (f *Fake) Lease(ifName string, address netip.Prefix, gateway netip.Addr) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.st == nil {
		return errDown
	}
	st := f.st
	i := st.named(ifName)
	if i == nil {
		return fmt.Errorf("vppfake: no interface %q", ifName)
	}
	at := st.dhcpClient(i.index)
	if at < 0 || !i.up {
		return fmt.Errorf("vppfake: interface %q asks for no lease", ifName)
	}
	d := st.dhcp[at]
	if d.lease != address || d.gateway != gateway {
		st.releaseLease(d)
	}
	if !address.IsValid() {
		return nil
	}
	if !d.lease.IsValid() {
		if rv := st.addAddress(i, address.Addr(), address.Bits()); rv != 0 {
			return errors.New("vppfake: the address cannot be put on the interface")
		}
		if gateway.IsValid() {
			i.ip[ip4].table.addPaths(netip.PrefixFrom(unspecified(ip4), 0), st.ip.sourceCalled("DHCP"), 0,
				[]path{viaInterface(i, ip4, gateway)})
		}
	}
	d.lease, d.gateway = address, gateway
	if _, open := f.server.sessions[d.session]; open && d.config.WantDHCPEvent {
		id := st.table.byName["dhcp_compl_event"].id
		d.session.post(id, d.session.index, &dhcp.DHCPComplEvent{PID: d.config.PID, Lease: d.details(st)})
		d.session.flush()
	}
	return nil
}

func dumpDHCP(st *state, d *dumper) {
	for _, c := range st.dhcp {
		d.add("dhcp client on %s lease %s gateway %s", st.ifs.all[c.ifx].label(), c.lease, c.gateway)
	}
}
