package main

import (
	"strings"
	"testing"

	"contiv.dev/vswitch/internal/cniapi"
)

// TestUnknownKeys: a key without effect is rejected, and the error names the most similar valid key.
func TestUnknownKeys(t *testing.T) {
	const begin = `{"cniVersion":"1.0.0","name":"k8s","type":"contiv-cni"`
	for _, tc := range []struct{ rest, want string }{
		{``, ""},
		{`,"agentSocket":"/run/x.sock","logFile":"/l","timeout":"5s","mtu":1400,"dns":{"nameservers":["10.96.0.10"],"search":["x"],"domain":"d","options":["o"]}`, ""},
		{`,"capabilities":{"portMappings":true},"runtimeConfig":{"portMappings":[]},"prevResult":null,"args":{"cni":{}},"ipMasq":true,"disableCheck":true`, ""},
		{`,"cni.dev/valid-attachments":[],"example.com/colour":"red"`, ""},
		{`,"agentSockett":"/run/x.sock"`, "network configuration: agentSockett: unknown key; did you mean agentSocket?"},
		{`,"agentsocket":"/run/x.sock"`, "did you mean agentSocket?"},
		{`,"MTU":1400`, "network configuration: MTU: unknown key; did you mean mtu?"},
		{`,"timeOut":"5s"`, "did you mean timeout?"},
		{`,"log":"/l"`, "log: unknown key; the keys here are agentSocket, "},
		{`,"logfil":"/l"`, "did you mean logFile?"},
		{`,"grpcServer":"localhost:9111"`, "grpcServer: unknown key; use agentSocket"},
		{`,"etcdEndpoints":"x"`, "etcdEndpoints: unknown key; remove it"},
		{`,"dns":{"nameserver":["10.96.0.10"]}`, "network configuration: dns.nameserver: unknown key; did you mean nameservers?"},
		{`,"":1`, "network configuration: : unknown key; the keys here are"},
		{`,"größe":1`, "größe: unknown key"},
		{`,"` + strings.Repeat("x", 100000) + `":1`, "unknown key"},
	} {
		conf := []byte(begin + tc.rest + "}")
		for _, command := range []cniapi.Command{cniapi.Add, cniapi.Check, cniapi.Status} {
			_, err := parseConfig(command, conf)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s %.80s\n  %.300v\n  want %q", command, tc.rest, err, tc.want)
			}
		}
		for _, command := range []cniapi.Command{cniapi.Del, cniapi.GC} {
			if _, err := parseConfig(command, conf); err != nil {
				t.Errorf("%s %.80s: %.300v", command, tc.rest, err)
			}
		}
	}
}
