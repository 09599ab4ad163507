package validate

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// linuxBesideVPP is what the second of the Linux nodes would have said in the cluster of those with VPP.
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

// TestMixed: nodes of either dataplane work together; a tunnel that VPP lacks to a Linux node is found, too.
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
