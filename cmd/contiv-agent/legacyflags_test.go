package main

import (
	"slices"
	"testing"
)

func TestContivArgs(t *testing.T) {
	for _, tc := range []struct{ args, want []string }{
		{[]string{"-contiv-config=/etc/contiv/contiv.conf"}, []string{"--config=/etc/contiv/contiv.conf"}},
		{[]string{"-contiv-config", "/c", "--log-level=debug"}, []string{"--config", "/c", "--log-level=debug"}},
		{[]string{"--contiv-config=/c=d"}, []string{"--config=/c=d"}},
		{[]string{"-controller-config=/c"}, []string{"--controller-config=/c"}},
		{[]string{"contiv-config", "--", "-contiv-config=/c"}, []string{"contiv-config", "--", "-contiv-config=/c"}},
		{nil, nil},
	} {
		if got := contivArgs(tc.args); !slices.Equal(got, tc.want) {
			t.Errorf("%q: %q, want %q", tc.args, got, tc.want)
		}
	}
	cmd := newCommand()
	if err := cmd.ParseFlags(contivArgs([]string{"-contiv-config=/etc/contiv/contiv.conf"})); err != nil {
		t.Fatal(err)
	}
	if got := cmd.Flags().Lookup("config").Value.String(); got != "/etc/contiv/contiv.conf" {
		t.Errorf("--config is %q", got)
	}
}
