package main

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"contiv.dev/vswitch/internal/cniapi"
)

func wantCode(t *testing.T, err error, code uint, text string) {
	t.Helper()
	var e *types.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Error(), text) {
		t.Errorf("got error %v, want code %d with %q", err, code, text)
	}
}

func TestConfig(t *testing.T) {
	c, err := parseConfig(cniapi.Add, []byte(`{"cniVersion":"1.1.0","name":"contiv","type":"contiv-cni","example.com/unknown":{"x":[1]},
		"mtu":1400,"timeout":"3s","logFile":"/var/log/cni.log","capabilities":{"dns":true},"ipam":{},
		"dns":{"nameservers":["10.96.0.10"],"domain":"cluster.local"},
		"runtimeConfig":{"dns":{"servers":["8.8.8.8"],"searches":["a.b"],"options":["ndots:5"]},"aliases":["x"],"mac":"","ips":[]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if c.MTU != 1400 || time.Duration(c.Timeout) != 3*time.Second || c.AgentSocket != cniapi.DefaultSocket {
		t.Errorf("got %+v", c)
	}
	dns := c.network().DNS
	if dns.Nameservers[0] != "8.8.8.8" || dns.Search[0] != "a.b" || dns.Options[0] != "ndots:5" || dns.Domain != "cluster.local" {
		t.Errorf("got %+v", dns)
	}
	c, err = parseConfig(cniapi.Add, []byte(`{"name":"n","timeout":2.5}`))
	if err != nil || time.Duration(c.Timeout) != 2500*time.Millisecond {
		t.Errorf("got %+v, %v", c, err)
	}
	// null means that a value is missing: the value from another place, or the default, is used.
	c, err = parseConfig(cniapi.Add, []byte(`{"name":"n","timeout":null,"mtu":null,"dns":{"nameservers":["10.96.0.10"]},
		"runtimeConfig":{"dns":null,"ips":null},"prevResult":null}`))
	if err != nil || time.Duration(c.Timeout) != defaultTimeout || len(c.DNS.Nameservers) != 1 {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestInvalidConfig(t *testing.T) {
	for conf, want := range map[string]struct {
		code uint
		text string
	}{
		`{"mtu":-1}`:                                 {types.ErrInvalidNetworkConfig, "mtu"},
		`{"mtu":70000}`:                              {types.ErrInvalidNetworkConfig, "mtu"},
		`{"mtu":"1500"}`:                             {types.ErrInvalidNetworkConfig, "mtu"},
		`{"agentSocket":"cni.sock"}`:                 {types.ErrInvalidNetworkConfig, "agentSocket"},
		`{"agentSocket":"tcp://1.2.3.4:1"}`:          {types.ErrInvalidNetworkConfig, "agentSocket"},
		`{"timeout":"soon"}`:                         {types.ErrInvalidNetworkConfig, "soon"},
		`{"timeout":"-1s"}`:                          {types.ErrInvalidNetworkConfig, "timeout"},
		`{"timeout":1e9}`:                            {types.ErrInvalidNetworkConfig, "seconds"},
		`{"logFile":"x.log"}`:                        {types.ErrInvalidNetworkConfig, "logFile"},
		`{"dns":{"nameservers":["dns.example"]}}`:    {types.ErrInvalidNetworkConfig, "dns.nameservers"},
		`{"ipam":{"type":"host-local"}}`:             {types.ErrUnsupportedField, "ipam"},
		`{"runtimeConfig":{"ips":["10.1.1.9/24"]}}`:  {types.ErrUnsupportedField, "runtimeConfig.ips"},
		`{"runtimeConfig":{"bandwidth":{"rate":1}}}`: {types.ErrUnsupportedField, "runtimeConfig.bandwidth"},
		`{"runtimeConfig":{"dns":7}}`:                {types.ErrInvalidNetworkConfig, "runtimeConfig.dns"},
		`{"prevResult":{"ips":[{"address":"x"}]}}`:   {types.ErrInvalidNetworkConfig, ""},
	} {
		_, err := parseConfig(cniapi.Add, []byte(conf))
		wantCode(t, err, want.code, want.text)
		// An attachment can always be deleted if the agent can be reached.
		_, err = parseConfig(cniapi.Del, []byte(conf))
		if reachable := !strings.Contains(conf, "agentSocket") && conf != `{"timeout":"-1s"}`; (err == nil) != reachable {
			t.Errorf("DEL with %s: %v", conf, err)
		}
	}
}

func TestArgs(t *testing.T) {
	pod, err := parseArgs("IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_UID=12;K8S_POD_INFRA_CONTAINER_ID=ab=c;")
	if err != nil || pod != (cniapi.Pod{Namespace: "default", Name: "web", UID: "12"}) {
		t.Errorf("got %+v, %v", pod, err)
	}
	if pod, err := parseArgs(""); err != nil || pod != (cniapi.Pod{}) {
		t.Errorf("got %+v, %v", pod, err)
	}
	for _, args := range []string{"K8S_POD_NAME", "K8S_POD_NAME=web", "K8S_POD_NAMESPACE=x"} {
		_, err := parseArgs(args)
		wantCode(t, err, types.ErrInvalidEnvironmentVariables, "CNI_ARGS")
	}
}

func TestPrevResultIsKept(t *testing.T) {
	c, err := parseConfig(cniapi.Add, []byte(`{"cniVersion":"0.4.0","name":"n","prevResult":{"cniVersion":"0.4.0",
		"interfaces":[null,{"name":"net1","sandbox":"/run/netns/a"}],
		"ips":[{"version":"4","interface":1,"address":"192.168.1.5/24","gateway":"192.168.1.1"},null],
		"routes":[{"dst":"192.168.0.0/16"},null],"dns":{"nameservers":["1.1.1.1"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	res := mergeResult(c.PrevResult, &cniapi.Result{
		Interfaces: []cniapi.Interface{{Name: "eth0", Sandbox: "/run/netns/a"}},
		IPs:        []cniapi.IP{{Interface: 0, Address: netip.MustParsePrefix("10.1.1.2/32")}},
	})
	if len(res.Interfaces) != 3 || len(res.IPs) != 2 || len(res.Routes) != 1 || res.DNS.Nameservers[0] != "1.1.1.1" {
		t.Fatalf("got %+v", res)
	}
	if *res.IPs[0].Interface != 1 || *res.IPs[1].Interface != 2 || res.IPs[1].Address.String() != "10.1.1.2/32" {
		t.Errorf("got %v %v", res.IPs[0], res.IPs[1])
	}
}

// TestResultKeepsTheAddress checks for an old bug of contiv: the network instead of the address, and one index for all.
func TestResultKeepsTheAddress(t *testing.T) {
	res := mergeResult(nil, &cniapi.Result{
		Interfaces: []cniapi.Interface{{Name: "tap"}, {Name: "eth0", Sandbox: "/n"}, {Name: "eth1", Sandbox: "/n"}},
		IPs: []cniapi.IP{
			{Interface: 1, Address: netip.MustParsePrefix("10.1.1.7/24"), Gateway: netip.MustParseAddr("10.1.1.1")},
			{Interface: 2, Address: netip.MustParsePrefix("fd00::7/64")},
		},
	})
	if got := res.IPs[0].Address.String(); got != "10.1.1.7/24" {
		t.Errorf("address %s", got)
	}
	if got := res.IPs[1].Address.String(); got != "fd00::7/64" {
		t.Errorf("address %s", got)
	}
	if *res.IPs[0].Interface != 1 || *res.IPs[1].Interface != 2 {
		t.Errorf("interfaces %d %d", *res.IPs[0].Interface, *res.IPs[1].Interface)
	}
}

// FuzzStdin: whatever a runtime writes to standard input, every command ends with a result or an error with a code.
func FuzzStdin(f *testing.F) {
	for _, seed := range []string{
		`{"cniVersion":"1.1.0","name":"contiv","mtu":1400,"timeout":"1s","dns":{"nameservers":["1.1.1.1"]}}`,
		`{"cniVersion":"0.3.1","name":"n","prevResult":{"interfaces":[null],"ips":[null,{"address":"::ffff:1.2.3.4/24"}],"routes":[null]}}`,
		`{"cniVersion":"0.4.0","name":"n","prevResult":{"ips":[{"interface":-3,"address":"10.0.0.1/0"},{"address":"1.2.3.4/33"}]}}`,
		`{"cniVersion":"1.1.0","name":"n","cni.dev/valid-attachments":[{"containerID":"a","ifname":"eth0"}],"runtimeConfig":{"dns":{}}}`,
		`null`, `[]`, `{`, `{"timeout":null}`, `{"ipam":null,"runtimeConfig":null}`,
	} {
		f.Add([]byte(seed), "K8S_POD_NAMESPACE=a;K8S_POD_NAME=b")
	}
	noLog := func(string, string) error { return nil }
	p := &plugin{stdout: io.Discard, appendLog: noLog, query: func(_ context.Context, _ *config, _ time.Duration, req *cniapi.Request) (*cniapi.Result, error) {
		if req.Command != cniapi.Add {
			return nil, cniapi.Errorf(cniapi.CodeTryAgain, "no")
		}
		return &cniapi.Result{
			Interfaces: []cniapi.Interface{{Name: "eth0", Sandbox: "/n"}},
			IPs:        []cniapi.IP{{Address: netip.MustParsePrefix("10.1.1.2/32")}, {Address: netip.MustParsePrefix("fd00::1/128")}},
		}, nil
	}}
	funcs := p.funcs(f.Context())
	f.Fuzz(func(t *testing.T, stdin []byte, args string) {
		for _, call := range []func(*skel.CmdArgs) error{funcs.Add, funcs.Del, funcs.Check, funcs.GC, funcs.Status} {
			err := call(&skel.CmdArgs{ContainerID: "a", IfName: "eth0", Netns: "/proc/self/ns/uts", Args: args, StdinData: stdin})
			var e *types.Error
			if err != nil && (!errors.As(err, &e) || e.Code == 0 || e.Msg == "") {
				t.Errorf("error %v has no code", err)
			}
		}
	})
}
