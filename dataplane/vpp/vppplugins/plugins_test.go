package vppplugins

import (
	"slices"
	"testing"
)

func TestConfig(t *testing.T) {
	for _, tc := range []struct {
		name, extra string
		want        []string
	}{
		{"nothing else", "", []string{"plugin default { disable }", "plugin a_plugin.so { enable }", "plugin b_plugin.so { enable }"}},
		{"one is turned off", "plugins {\n  plugin a_plugin.so { disable }\n}", []string{"plugin default { disable }", "plugin b_plugin.so { enable }"}},
		{"without spaces", "plugins{plugin a_plugin.so{disable}plugin default{enable}}", []string{"plugin b_plugin.so { enable }"}},
		{"another one", "plugins { plugin c_plugin.so { enable } } # a_plugin.so",
			[]string{"plugin default { disable }", "plugin a_plugin.so { enable }", "plugin b_plugin.so { enable }"}},
	} {
		if got := Config(tc.extra, "a", "b"); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}
