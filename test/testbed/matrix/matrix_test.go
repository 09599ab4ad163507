package matrix

import "testing"

func TestSkip(t *testing.T) {
	for _, tc := range []struct {
		test, run string
		all       bool
		names     []string
		want      bool
	}{
		{test: "TestBulk/vpp-vxlan", names: []string{"linux", "vpp-vxlan"}},
		{test: "TestBulk/vpp-vxlan", names: []string{"vpp-vxlan-veth"}, want: true},
		{test: "TestBulk/vpp-vxlan", all: true},
		{test: "TestBulk/vpp-vxlan", run: "TestBulk/vpp-vxlan$"},
		{test: "TestBulk/vpp-vxlan", run: "TestBulk/(linux|vpp-vxlan)$"},
		{test: "TestBulk/vpp-vxlan", names: []string{"linux"}, run: "TestBulk/vpp-vxlan-veth$", want: true},
		{test: "TestBulk/vpp-vxlan", names: []string{"linux"}, run: "TestBulk", want: true},
		{test: "TestFull", want: true},
		{test: "TestFull", run: "^TestFull$"},
		{test: "TestFull/vpp", want: true},
		{test: "TestFull/vpp", run: "TestFull"},
		{test: "TestFull/vpp", run: "TestOther", want: true},
	} {
		if got := skip(tc.test, tc.run, tc.all, tc.names); got != tc.want {
			t.Errorf("%+v: skip is %t", tc, got)
		}
	}
}
