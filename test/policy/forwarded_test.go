package policy

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"contiv.dev/vswitch/test/testbed"
	"contiv.dev/vswitch/test/testbed/netns"
)

// hostPort of the node is forwarded to port httpPort of pod web3.
const hostPort = 18080

// withHostPorts returns a list in which the reference plugin for host ports follows ours, as in the chart with each dataplane.
func withHostPorts(onVPP bool) func(agentSocket string) []byte {
	return func(agentSocket string) []byte {
		text, err := json.Marshal(map[string]any{
			"cniVersion": "1.1.0", "name": "contiv", "plugins": []any{
				map[string]any{"type": "contiv-cni", "agentSocket": agentSocket},
				map[string]any{"type": "portmap", "capabilities": map[string]bool{"portMappings": true}, "masqAll": onVPP},
			},
		})
		if err != nil {
			panic(err) // the lists are literals
		}
		return text
	}
}

// hostPortPod adds a pod of node 1 with a host port of TCP and UDP.
func (w *world) hostPortPod(name string) {
	w.t.Helper()
	n := w.Nodes[0]
	w.must(w.api.Put(w.object(n.Name, name)))
	p, err := n.NewPod(w.ctx, name)
	w.must(err)
	w.pods[name] = p
	var ports []map[string]any
	for _, protocol := range []string{"tcp", "udp"} {
		ports = append(ports, map[string]any{"hostPort": hostPort, "containerPort": httpPort, "protocol": protocol})
	}
	p.Capabilities = map[string]any{"portMappings": ports}
	_, err = n.CNI.Add(w.ctx, p)
	w.must(err)
	w.spaces[name], w.addrs[name] = p.Namespace, p.IPs
	w.must(w.api.Put(w.object(n.Name, name)))
	w.serve(name)
}

// behindHost adds a machine behind the host of node 1, which masquerades the machine's packets, as Docker does for its containers.
func (w *world) behindHost(name string) {
	w.t.Helper()
	n := w.Nodes[0]
	ns, err := netns.New(w.ctx, n.Name+"b")
	w.must(err)
	w.t.Cleanup(func() { _ = ns.Delete(w.ctx) })
	w.spaces[name] = ns
	w.addrs[name] = []netip.Addr{netip.MustParseAddr("10.201.0.2"), netip.MustParseAddr("fd00:201::2")}
	// The host has no address there: otherwise the agent would have to be configured with it.
	const mac = "02:00:00:00:c9:01"
	w.run(n.Namespace, "ip", "link", "add", "behind", "address", mac, "type", "veth", "peer", "name", "eth0", "netns", ns.Name)
	w.run(n.Namespace, "ip", "link", "set", "behind", "up")
	w.run(ns, "ip", "link", "set", "eth0", "up")
	for f, gateway := range []string{"10.201.0.1", "fd00:201::1"} {
		own := w.addrs[name][f].String()
		w.run(ns, "ip", "addr", "add", own+[]string{"/24", "/64"}[f], "dev", "eth0", "nodad")
		w.run(ns, "ip", "neigh", "add", gateway, "lladdr", mac, "dev", "eth0")
		w.run(ns, "ip", "route", "add", "default", "via", gateway)
		w.run(n.Namespace, "ip", "route", "add", own, "dev", "behind")
	}
	for _, family := range []string{"ip", "ip6"} {
		w.run(n.Namespace, "nft", fmt.Sprintf("table %s behind { chain out { type nat hook postrouting priority 100; "+
			"iifname behind masquerade; }; }", family))
	}
}

// TestForwarded checks that packets that the host only forwards, under its own address, do not pass as packets of the pod's own node:
// host ports, and masqueraded packets. Without policy they arrive, and the answers come back.
func TestForwarded(t *testing.T) {
	each(t, func(t *testing.T, backend string) { forwarded(t, backend, true) })
}

// TestForwardedWithoutNFT is TestForwarded on a VPP node whose agent finds iptables and no nft.
func TestForwardedWithoutNFT(t *testing.T) {
	each(t, func(t *testing.T, backend string) {
		if backend != onVPP {
			t.Skip("skipped: the Linux dataplane does not use nft for what it forwards")
		}
		forwarded(t, backend, false)
	})
}

// pathWithoutNFT returns a directory with all programs of this machine's PATH except nft.
func pathWithoutNFT(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, from := range filepath.SplitList(os.Getenv("PATH")) {
		programs, err := os.ReadDir(from)
		if err != nil {
			continue // PATH may contain folders that do not exist
		}
		for _, p := range programs {
			if p.Name() != "nft" {
				_ = os.Symlink(filepath.Join(from, p.Name()), filepath.Join(dir, p.Name())) // the first program of a name counts
			}
		}
	}
	return dir
}

func forwarded(t *testing.T, backend string, nft bool) {
	w := newWorldWith(t, backend, func(o *testbed.ClusterOptions) {
		o.Node.CNIInNode, o.Node.ConflistOf = true, withHostPorts(backend == onVPP)
		if !nft {
			o.Node.AgentEnv = append(o.Node.AgentEnv, "PATH="+pathWithoutNFT(t))
		}
	})
	w.hostPortPod("web3")
	w.behindHost("box")
	port := fmt.Sprint(hostPort)
	reaches := func(signs string) (lines string) {
		for i, line := range []string{
			"h2 h1 tcp " + port, "h2 h1 udp " + port, "cli1 h1 tcp " + port, "cli2 h1 tcp " + port, "box h1 tcp " + port,
			"box web3 tcp 8080", "box web3 udp 8080", "box web3 icmp", "box web2 tcp 8080",
		} {
			lines += signs[min(i, len(signs)-1):][:1] + " " + line + "\n"
		}
		return lines
	}
	const own = "+ h1 web3 tcp 8080\n+ h1 h1 tcp 18080\n"
	w.expect(reaches("+") + own)
	w.policy("closed", `{podSelector: {matchLabels: {app: web}}}`)
	w.expect(reaches("-") + own)
	w.policy("closed", "")
	w.expect(reaches("+") + own)
}
