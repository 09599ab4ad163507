package trace

import (
	"net/netip"
	"strings"
	"testing"
)

// TestPluginNodes: the traces of our VPP plugin's nodes are described (format_contiv_trace of dataplane/vpp/plugin/shell/trace.c).
func TestPluginNodes(t *testing.T) {
	for trace, want := range map[string]string{
		"sw_if_index 6: pass, passed\n TCP 10.1.1.4:4711 -> 10.1.2.2:80": "passed",
		"sw_if_index 6: pass, translated, connection 12\n TCP 10.1.1.4:4711 -> 10.96.0.11:80\n as 10.1.1.4:4711 -> 10.1.2.2:8080": "translated: " +
			"10.1.1.4:4711 -> 10.96.0.11:80 becomes 10.1.1.4:4711 -> 10.1.2.2:8080 (connection 12)",
		"sw_if_index 6: pass, translated, connection 1\n TCP [fd10::4]:4711 -> [fd96::11]:80\n as [fd10::4]:4711 -> [fd10::2]:8080": "translated: " +
			"[fd10::4]:4711 -> [fd96::11]:80 becomes [fd10::4]:4711 -> [fd10::2]:8080 (connection 1)",
		"sw_if_index 6: pass, passed, connection 3\n UDP 10.1.1.4:1 -> 10.1.1.5:2\n as 10.1.1.4:1 -> 10.1.1.5:2": "passed: 10.1.1.4:1 -> 10.1.1.5:2 (connection 3)",
		"sw_if_index 6: drop, source that is not the pod's\n UDP 10.1.1.9:1 -> 10.1.1.5:2":                       "drop: source that is not the pod's",
		"sw_if_index 6: reject, rejected, no backend\n TCP 10.1.1.4:4711 -> 10.96.0.13:80":                       "reject: rejected, no backend",
		"sw_if_index 6: pass, translated, fragment, connection 12\n UDP 10.1.1.4:0 -> 10.96.0.11:0":              "translated, by the ports of the first fragment: 10.1.1.4:0 -> 10.96.0.11:0 (connection 12)",
		"sw_if_index 6: drop, denied by network policy\n TCP 10.1.1.4:1 -> 10.1.1.5:2":                           "drop: denied by network policy",
		"sw_if_index 6: drop, denied by network policy\n TCP [fd10::4]:1 -> [fd96::11]:80\n as [fd10::4]:1 -> [fd10::2]:8080": "drop: denied by network policy: " +
			"[fd10::4]:1 -> [fd96::11]:80 would become [fd10::4]:1 -> [fd10::2]:8080",
		"something else": "something else",
	} {
		if got := pluginWhat(strings.Split(trace, "\n")); got != want {
			t.Errorf("%q\n got %q\nwant %q", trace, got, want)
		}
	}
}

// TestDeniedBackend: for a packet to a service that policy denies, the backend that was chosen is shown; for others, none is.
func TestDeniedBackend(t *testing.T) {
	vip := netip.MustParseAddrPort("10.96.0.11:80")
	for lines, want := range map[string]string{
		"sw_if_index 6: drop, denied by network policy\nTCP 10.1.1.4:4711 -> 10.96.0.11:80\nas 10.1.1.4:4711 -> 10.1.2.2:8080":             "10.1.2.2:8080",
		"sw_if_index 6: drop, denied by network policy\nTCP 10.1.1.4:4711 -> 10.96.0.11:80":                                                "",
		"sw_if_index 6: drop, denied by network policy, connection 7\nTCP 10.1.1.4:4711 -> 10.96.0.11:80\nas 10.1.1.4:4711 -> 10.1.2.2:80": "",
	} {
		p := vppPacket{{node: "virtio-input"}, {node: "ip4-input", lines: []string{"TCP: 10.1.1.4 -> 10.96.0.11", "TCP: 4711 -> 80"}},
			{node: "contiv-ip4-input", lines: strings.Split(lines, "\n")}, {node: "error-drop", lines: []string{"rx:tap1"}},
			{node: "drop", lines: []string{"contiv-ip4-input: denied by network policy"}}}
		side := Side{There: p.path(newNames(nil))}
		side.There.Came, side.There.Left = p.ends("TCP")
		chosen, ok := ChosenBy(side, vip)
		if ok != (want != "") || ok && chosen.String() != want || side.There.Came.Dest != vip || side.There.Outcome != Dropped {
			t.Errorf("%s\nchosen %v %t, path %+v", lines, chosen, ok, side.There)
		}
	}
}
