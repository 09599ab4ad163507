package trace

import (
	"strings"
	"testing"
)

// TestPluginNodes: what the nodes of our VPP plugin trace (format_contiv_trace of dataplane/vpp/plugin/shell/trace.c).
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
		"something else": "something else",
	} {
		if got := pluginWhat(strings.Split(trace, "\n")); got != want {
			t.Errorf("%q\n got %q\nwant %q", trace, got, want)
		}
	}
}
