package didyoumean

import (
	"strings"
	"testing"
)

func TestClosest(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		candidates []string
	}{
		{"mtuSise", "mtuSize", []string{"mtuSize", "podVRFID"}},
		{"MTUSIZE", "mtuSize", []string{"mtuSize"}},
		{"CONTIV_ETCD_ENDPOINT", "CONTIV_ETCD_ENDPOINTS", []string{"CONTIV_ETCD_CA", "CONTIV_ETCD_ENDPOINTS"}},
		{"tapv2RxRing", "tapv2RxRingSize", []string{"tapv2RxRingSize", "x"}},
		{"banana", "", []string{"mtuSize", "podVRFID"}},
		{"", "", []string{"mtuSize"}},
		{"x", "", nil},
		{strings.Repeat("mtuSize", 1000), "", []string{"mtuSize"}},
		{"größe", "grösse", []string{"grösse"}},
	} {
		if got := Closest(tc.name, tc.candidates); got != tc.want {
			t.Errorf("%.30q: %q, want %q", tc.name, got, tc.want)
		}
	}
}
