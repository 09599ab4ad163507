package contiv

import (
	"slices"

	"contiv.dev/vswitch/dataplane/nb"
	vpp_contiv "contiv.dev/vswitch/dataplane/nb/vpp/contiv"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/binapi/contiv"
	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/kit"
)

// contivTunnelPorts is the plugin's maximum number of tunnel ports.
const contivTunnelPorts = 4

// contivTimeout is the longest timeout, in seconds.
const contivTimeout = 30 * 86400

// contivSettings holds the plugin's settings with the defaults in place of zeros, so that equal settings
// compare as equal.
type contivSettings struct {
	connections                                uint32
	ports                                      [contivTunnelPorts]uint16 // in order
	established, transitory, udp, stream, icmp uint32
	sctp                                       uint32
}

// contivDefaults returns the values that zeros stand for, and that the plugin has after a Config is deleted.
func contivDefaults() contivSettings {
	return contivSettings{
		connections: 16384, established: 86400, transitory: 60, udp: 30, stream: 180, icmp: 30, sctp: 210,
	}
}

// contivConfigDescriptor returns the descriptor of the plugin's settings. The plugin reports them with the defaults in
// place of zeros.
func (k *descriptors) contivConfigDescriptor() scheduler.Descriptor[*vpp_contiv.Config] {
	set := func(op *scheduler.Op, v *vpp_contiv.Config) {
		k.Do(op, kit.Named("configure", "the contiv plugin"), contivSettingsOf(v).request())
	}
	return scheduler.Descriptor[*vpp_contiv.Config]{
		Name: "vpp-contiv-config", Prefix: nb.ContivConfigKey, Rank: scheduler.RankTable,
		Validate: func(_ string, v *vpp_contiv.Config) error { return validateContivConfig(v) },
		Equal: func(_ string, desired, applied *vpp_contiv.Config) bool {
			return contivSettingsOf(desired) == contivSettingsOf(applied)
		},
		Create: func(op *scheduler.Op, _ string, v *vpp_contiv.Config) { set(op, v) },
		Update: func(op *scheduler.Op, _ string, _, v *vpp_contiv.Config) { set(op, v) },
		Delete: func(op *scheduler.Op, _ string, _ *vpp_contiv.Config) { set(op, &vpp_contiv.Config{}) },
		Dump: func(op *scheduler.DumpOp, emit func(string, *vpp_contiv.Config)) {
			wanted := false
			op.EachDesired(func(string, any) { wanted = true })
			conn.Call(k.Lane, &contiv.ContivConfigGet{}, func(r *contiv.ContivConfigGetReply, err error) {
				if err == nil {
					if v := contivConfigOf(r); wanted || contivSettingsOf(v) != contivDefaults() {
						emit(nb.ContivConfigKey, v)
					}
				}
				endContivDump(op, "the contiv plugin's settings", err)
			})
		},
	}
}

func validateContivConfig(v *vpp_contiv.Config) error {
	var f kit.Faults
	if len(v.TunnelPorts) > contivTunnelPorts {
		f.Add("tunnel_ports", "has %d, and there is room for %d", len(v.TunnelPorts), contivTunnelPorts)
	}
	for _, p := range v.TunnelPorts {
		if p == 0 || p > 65535 {
			f.Add("tunnel_ports", "%d is not a port", p)
		}
	}
	for _, seconds := range []uint32{v.TcpEstablished, v.TcpTransitory, v.Udp, v.UdpStream, v.Icmp, v.Sctp} {
		if seconds > contivTimeout {
			f.Add("timeouts", "%d seconds is more than %d", seconds, contivTimeout)
		}
	}
	return f.Err()
}

func contivSettingsOf(v *vpp_contiv.Config) contivSettings {
	s := contivDefaults()
	for _, field := range []struct {
		to   *uint32
		from uint32
	}{
		{&s.connections, v.EndpointConnections}, {&s.established, v.TcpEstablished}, {&s.transitory, v.TcpTransitory},
		{&s.udp, v.Udp}, {&s.stream, v.UdpStream}, {&s.icmp, v.Icmp}, {&s.sctp, v.Sctp},
	} {
		if field.from != 0 {
			*field.to = field.from
		}
	}
	ports := slices.Clone(v.TunnelPorts)
	slices.Sort(ports)
	for i, p := range slices.Compact(ports) {
		s.ports[i] = uint16(p)
	}
	return s
}

func (s contivSettings) request() *contiv.ContivConfigSet {
	return &contiv.ContivConfigSet{
		EndpointConnections: s.connections, TunnelPorts: s.ports[:], TCPEstablished: s.established, TCPTransitory: s.transitory,
		UDP: s.udp, UDPStream: s.stream, ICMP: s.icmp, Sctp: s.sctp,
	}
}

func contivConfigOf(r *contiv.ContivConfigGetReply) *vpp_contiv.Config {
	v := &vpp_contiv.Config{
		EndpointConnections: r.EndpointConnections, TcpEstablished: r.TCPEstablished, TcpTransitory: r.TCPTransitory, Udp: r.UDP,
		UdpStream: r.UDPStream, Icmp: r.ICMP, Sctp: r.Sctp,
	}
	for _, p := range r.TunnelPorts {
		if p != 0 {
			v.TunnelPorts = append(v.TunnelPorts, uint32(p))
		}
	}
	return v
}
