package main

import (
	"github.com/spf13/pflag"

	"contiv.dev/vswitch/plugins/service"
	"contiv.dev/vswitch/plugins/service/renderer"
	"contiv.dev/vswitch/plugins/service/renderer/cnat"
	"contiv.dev/vswitch/plugins/service/renderer/hostend"
)

// cnatOptions say what VPP's cnat serves; IPv6 it always does.
type cnatOptions struct {
	ipv4 bool
}

func (o *cnatOptions) register(f *pflag.FlagSet) {
	f.BoolVar(&o.ipv4, "cnat-ipv4", false, "with VPP: services are served by cnat for IPv4, too, instead of by NAT44; "+
		"natExternalTraffic has no effect then")
}

// cnatRenderers make VPP's cnat serve services.
func (a *agent) cnatRenderers(p *service.Plugin, host *hostPorts) []renderer.ServiceRendererAPI {
	families := renderer.FamilyIPv6
	if a.opts.cnat.ipv4 {
		families |= renderer.FamilyIPv4
	}
	deps := cnat.Deps{
		NodeName: a.opts.nodeName, Network: a.ipnet, Txn: p.Txn(), Families: families, Log: a.log.With("component", "cnat"),
	}
	if host != nil {
		deps.SetPlaces, deps.SetAliases = host.setPlaces, host.setAliases
	}
	out := []renderer.ServiceRendererAPI{cnat.New(deps)}
	if host != nil {
		out = append(out, hostend.New(hostend.Deps{Network: a.ipnet, Families: families, Set: host.setEnd}))
	}
	return out
}
