package validate

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// linuxBesideVPP returns the view of the second Linux node, changed as if the node were in the cluster of the nodes with VPP.
func linuxBesideVPP(t *testing.T) *View {
	t.Helper()
	data, err := os.ReadFile("testdata/linux.json")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("192.168.16.101", "192.168.16.1", "192.168.16.102", "192.168.16.2",
		"fd00:16::65/64", "fd00:192:168:16::1/112", "fd00:16::66/64", "fd00:192:168:16::2/112").Replace(string(data))
	var v []*View
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v[1]
}

// TestMixed: nodes of both dataplanes work together; a missing VPP tunnel to a Linux node is found, too.
func TestMixed(t *testing.T) {
	mixed := []*View{views(t, "vpp")[0], linuxBesideVPP(t)}
	if found := Cluster(mixed); len(found) > 0 {
		t.Errorf("in good order: %+v", found)
	}
	without(mixed[0], "interfaces/vxlan-default-2")
	tunnels := 0
	for _, f := range Cluster(mixed) {
		if f.Node == "n1" && f.About == "tunnel" && f.Object == "n2" {
			tunnels++
		}
	}
	if tunnels != 1 {
		t.Errorf("a missing tunnel: %+v", Cluster(mixed))
	}
}

// TestIPv6BetweenNodes: nodes that reach each other by IPv6 only have no findings, and differences are found.
func TestIPv6BetweenNodes(t *testing.T) {
	data, err := os.ReadFile("testdata/linux.json")
	if err != nil {
		t.Fatal(err)
	}
	// A node reports all of its own addresses; of another node it stores the address by which it reaches that node.
	parents := regexp.MustCompile(`"parent_device_ip": *"[^"]*", *|, *"parent_device_ipv6": *"[^"]*"`)
	mac := regexp.MustCompile(`("mac_v6": *"12:2b:00:00:00:0([12])")`)
	text := parents.ReplaceAllString(string(data), "")
	text = mac.ReplaceAllString(text, `$1, "parent_device_ipv6": "fd00:16::6${2}"`)
	text = strings.NewReplacer("fd00:16::61", "fd00:16::65", "fd00:16::62", "fd00:16::66", "192.168.16.101/", "fd00:17::65/",
		"192.168.16.102/", "fd00:17::66/", "192.168.16.101", "fd00:16::65", "192.168.16.102", "fd00:16::66").Replace(text)
	read := func() (v []*View) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	if found := Cluster(read()); len(found) > 0 {
		t.Errorf("in good order: %+v", found)
	}
	for from, to := range map[string]string{`"parent_device_ipv6": "fd00:16::66"`: `"parent_device_ipv6": "fd00:16::67"`,
		"fd00:192:168:30::2": "fd00:192:168:30::9"} {
		v := read()
		replace(t, v[0], "vtep/n2", from, to)
		if found := Cluster(v); len(found) != 1 || found[0].Node != "n1" || found[0].About != "tunnel" {
			t.Errorf("%s: %+v", to, found)
		}
	}
}
