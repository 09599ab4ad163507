package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"

	"contiv.dev/vswitch/internal/cniapi"
)

// agent is a minimal agent.
type agent struct {
	mu     sync.Mutex
	pods   map[string]cniapi.Request
	fail   *cniapi.Error
	cancel context.CancelFunc
	done   chan error
}

func startAgent(t *testing.T, socket string, pods map[string]cniapi.Request) *agent {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := &agent{pods: pods, cancel: cancel, done: make(chan error, 1)}
	go func() { a.done <- cniapi.NewServer(cniapi.ServerConfig{Socket: socket}).Serve(ctx, a.handle) }()
	t.Cleanup(a.stop)
	return a
}

func (a *agent) stop() {
	a.cancel()
	<-a.done
	a.done <- nil
}

func (a *agent) handle(_ context.Context, req *cniapi.Request) (*cniapi.Result, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fail != nil {
		return nil, a.fail
	}
	switch req.Command {
	case cniapi.Add:
		a.pods[req.ContainerID] = *req
		return &cniapi.Result{
			Interfaces: []cniapi.Interface{
				{Name: "tap1"}, {Name: req.IfName, MAC: "02:fe:00:00:00:01", MTU: 1450, Sandbox: req.Netns}},
			IPs: []cniapi.IP{
				{Interface: 1, Address: netip.MustParsePrefix("10.1.1.5/32"), Gateway: netip.MustParseAddr("10.1.1.1")},
				{Interface: 1, Address: netip.MustParsePrefix("fd10:1:1::5/128"), Gateway: netip.MustParseAddr("fd10:1:1::1")}},
			Routes: []cniapi.Route{{Dst: netip.MustParsePrefix("0.0.0.0/0"), GW: netip.MustParseAddr("10.1.1.1")}},
			DNS:    req.Network.DNS,
		}, nil
	case cniapi.Del:
		delete(a.pods, req.ContainerID)
	case cniapi.Check:
		if _, ok := a.pods[req.ContainerID]; !ok {
			return nil, cniapi.Errorf(cniapi.CodeUnknownContainer, "unknown")
		}
		if req.PrevResult == nil || len(req.PrevResult.Interfaces) != 2 || req.PrevResult.IPs[0].Interface != 1 {
			return nil, cniapi.Errorf(cniapi.CodeInternal, "prevResult %+v", req.PrevResult)
		}
	case cniapi.GC:
		keep := map[string]bool{}
		for _, v := range req.ValidAttachments {
			keep[v.ContainerID] = true
		}
		for id := range a.pods {
			if !keep[id] {
				delete(a.pods, id)
			}
		}
	}
	return nil, nil
}

type env struct {
	t      *testing.T
	dir    string
	socket string
	bin    string
	cni    *libcni.CNIConfig
	netns  string
}

func newEnv(t *testing.T) *env {
	dir := t.TempDir()
	e := &env{t: t, dir: dir, socket: filepath.Join(dir, "cni.sock"), bin: binDir(t), netns: netns(t)}
	e.cni = libcni.NewCNIConfigWithCacheDir([]string{e.bin}, filepath.Join(dir, "cache"), nil)
	return e
}

// netns returns an empty network namespace. It is in its own user namespace, so the test needs no root.
func netns(t *testing.T) string {
	cmd := exec.Command("sleep", "infinity")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		t.Skipf("no network namespace can be made here: %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return fmt.Sprintf("/proc/%d/ns/net", cmd.Process.Pid)
}

func (e *env) list(version string, extra map[string]any) *libcni.NetworkConfigList {
	e.t.Helper()
	conf := map[string]any{"type": "contiv-cni", "agentSocket": e.socket, "dns": map[string]any{"nameservers": []string{"10.96.0.10"}}}
	for k, v := range extra {
		conf[k] = v
	}
	data, err := json.Marshal(map[string]any{"cniVersion": version, "name": "contiv",
		"plugins": []any{conf, map[string]any{"type": "recorder", "dir": e.dir}}})
	if err != nil {
		e.t.Fatal(err)
	}
	list, err := libcni.NetworkConfFromBytes(data)
	if err != nil {
		e.t.Fatal(err)
	}
	return list
}

func (e *env) runtime(container string) *libcni.RuntimeConf {
	return &libcni.RuntimeConf{ContainerID: container, NetNS: e.netns, IfName: "eth0",
		Args: [][2]string{{"IgnoreUnknown", "1"}, {"K8S_POD_NAMESPACE", "default"}, {"K8S_POD_NAME", "web"}}}
}

func TestAllSpecVersions(t *testing.T) {
	for _, version := range []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		t.Run(version, func(t *testing.T) {
			e := newEnv(t)
			a := startAgent(t, e.socket, map[string]cniapi.Request{})
			list, ctx := e.list(version, nil), t.Context()
			res, err := e.cni.AddNetworkList(ctx, list, e.runtime("c1"))
			if err != nil {
				t.Fatal(err)
			}
			if res.Version() != version {
				t.Errorf("result has version %s", res.Version())
			}
			checkResult(t, e, res, version)
			again, err := e.cni.AddNetworkList(ctx, list, e.runtime("c1"))
			if err != nil || fmt.Sprint(again) != fmt.Sprint(res) && version >= "1" {
				checkResult(t, e, again, version)
			}
			if a.pods["c1"].Pod != (cniapi.Pod{Namespace: "default", Name: "web"}) {
				t.Errorf("agent saw %+v", a.pods["c1"])
			}
			if version != "0.3.1" {
				if err := e.cni.CheckNetworkList(ctx, list, e.runtime("c1")); err != nil {
					t.Errorf("CHECK: %v", err)
				}
			}
			if version == "1.1.0" {
				e.statusAndGC(a, list)
			}
			for range 2 {
				if err := e.cni.DelNetworkList(ctx, list, e.runtime("c1")); err != nil {
					t.Errorf("DEL: %v", err)
				}
			}
			if len(a.pods) != 0 {
				t.Errorf("left: %v", a.pods)
			}
		})
	}
}

func checkResult(t *testing.T, e *env, res types.Result, version string) {
	t.Helper()
	got, err := types100.NewResultFromResult(res)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Interfaces) != 2 || got.Interfaces[1].Name != "eth0" || got.Interfaces[1].Sandbox != e.netns || got.Interfaces[0].Sandbox != "" {
		t.Errorf("interfaces %v", got.Interfaces)
	}
	if version == "1.1.0" && got.Interfaces[1].Mtu != 1450 {
		t.Errorf("mtu %d", got.Interfaces[1].Mtu)
	}
	if len(got.IPs) != 2 || got.IPs[0].Address.String() != "10.1.1.5/32" || *got.IPs[0].Interface != 1 ||
		got.IPs[0].Gateway.String() != "10.1.1.1" || got.IPs[1].Address.String() != "fd10:1:1::5/128" {
		t.Errorf("ips %v", got.IPs)
	}
	if len(got.Routes) != 1 || got.Routes[0].Dst.String() != "0.0.0.0/0" || got.DNS.Nameservers[0] != "10.96.0.10" {
		t.Errorf("routes %v, dns %v", got.Routes, got.DNS)
	}
	chained := struct{ PrevResult json.RawMessage }{}
	data, err := os.ReadFile(filepath.Join(e.dir, "ADD"))
	if err != nil || json.Unmarshal(data, &chained) != nil || !strings.Contains(string(chained.PrevResult), "10.1.1.5/32") {
		t.Errorf("next plugin of the chain got %s, %v", data, err)
	}
}

func (e *env) statusAndGC(a *agent, list *libcni.NetworkConfigList) {
	e.t.Helper()
	ctx := e.t.Context()
	if err := e.cni.GetStatusNetworkList(ctx, list); err != nil {
		e.t.Errorf("STATUS: %v", err)
	}
	a.mu.Lock()
	a.fail = cniapi.Errorf(cniapi.CodeLimitedConnectivity, "VPP is down")
	a.mu.Unlock()
	wantCNI(e.t, e.cni.GetStatusNetworkList(ctx, list), cniapi.CodeLimitedConnectivity, "VPP is down")
	a.mu.Lock()
	a.fail = nil
	a.pods["stale"] = cniapi.Request{}
	a.mu.Unlock()
	keep := &libcni.GCArgs{ValidAttachments: []types.GCAttachment{{ContainerID: "c1", IfName: "eth0"}}}
	if err := e.cni.GCNetworkList(ctx, list, keep); err != nil {
		e.t.Errorf("GC: %v", err)
	}
	if _, stale := a.pods["stale"]; stale || len(a.pods) != 1 {
		e.t.Errorf("after GC: %v", a.pods)
	}
}

func wantCNI(t *testing.T, err error, code uint, text string) {
	t.Helper()
	var e *types.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Error(), text) {
		t.Errorf("got error %v, want code %d with %q", err, code, text)
	}
}

func TestAgentIsAway(t *testing.T) {
	e := newEnv(t)
	list, ctx := e.list("1.1.0", map[string]any{"timeout": "300ms"}), t.Context()
	start := time.Now()
	_, err := e.cni.AddNetworkList(ctx, list, e.runtime("c1"))
	wantCNI(t, err, types.ErrTryAgainLater, "contiv-agent does not respond")
	wantCNI(t, e.cni.DelNetworkList(ctx, list, e.runtime("c1")), types.ErrTryAgainLater, "contiv-agent does not respond")
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("took %s", took)
	}
	wantCNI(t, e.cni.GetStatusNetworkList(ctx, list), cniapi.CodeNotAvailable, "contiv-agent does not respond")
}

func TestAddSurvivesAgentRestart(t *testing.T) {
	e := newEnv(t)
	got := make(chan error, 1)
	go func() {
		_, err := e.cni.AddNetworkList(t.Context(), e.list("1.1.0", nil), e.runtime("c1"))
		got <- err
	}()
	time.Sleep(200 * time.Millisecond) // time for a few failed attempts; if there are none, this is not an error
	a := startAgent(t, e.socket, map[string]cniapi.Request{})
	if err := <-got; err != nil {
		t.Error(err)
	}
	if len(a.pods) != 1 {
		t.Errorf("pods %v", a.pods)
	}
}

func TestNetworkNamespaceIsChecked(t *testing.T) {
	e := newEnv(t)
	a := startAgent(t, e.socket, map[string]cniapi.Request{})
	rt := e.runtime("c1")
	rt.NetNS = "/proc/self/ns/net"
	_, err := e.cni.AddNetworkList(t.Context(), e.list("1.1.0", nil), rt)
	wantCNI(t, err, types.ErrInvalidNetNS, "host's")
	rt.NetNS = filepath.Join(e.dir, "absent")
	_, err = e.cni.AddNetworkList(t.Context(), e.list("1.1.0", nil), rt)
	wantCNI(t, err, types.ErrInvalidNetNS, "does not exist")
	if err := e.cni.DelNetworkList(t.Context(), e.list("1.1.0", nil), rt); err != nil {
		t.Errorf("DEL with a vanished namespace: %v", err)
	}
	rt.NetNS = ""
	if err := e.cni.DelNetworkList(t.Context(), e.list("1.1.0", nil), rt); err != nil {
		t.Errorf("DEL without a namespace: %v", err)
	}
	if len(a.pods) != 0 {
		t.Errorf("pods %v", a.pods)
	}
}

// run executes the binary with only the given environment.
func (e *env) run(command, stdin string, vars ...string) (stdout string, code uint) {
	e.t.Helper()
	cmd := exec.CommandContext(e.t.Context(), filepath.Join(e.bin, "contiv-cni"))
	cmd.Env = append(vars, "CNI_PATH="+e.bin, "CNI_COMMAND="+command)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.Output()
	answer := types.Error{}
	if err != nil && json.Unmarshal(out, &answer) != nil {
		e.t.Fatalf("%s: %v: %s", command, err, out)
	}
	return string(out), answer.Code
}

func TestErrorCodes(t *testing.T) {
	e := newEnv(t)
	full := []string{"CNI_CONTAINERID=c1", "CNI_IFNAME=eth0", "CNI_NETNS=" + e.netns}
	for name, tc := range map[string]struct {
		command, stdin string
		vars           []string
		code           uint
	}{
		"version of the spec": {"ADD", `{"cniVersion":"9.9.9","name":"n"}`, full, types.ErrIncompatibleCNIVersion},
		"CHECK in 0.3.1":      {"CHECK", `{"cniVersion":"0.3.1","name":"n"}`, full, types.ErrIncompatibleCNIVersion},
		"GC in 1.0.0":         {"GC", `{"cniVersion":"1.0.0","name":"n"}`, nil, types.ErrIncompatibleCNIVersion},
		"ipam":                {"ADD", `{"cniVersion":"1.1.0","name":"n","ipam":{"type":"x"}}`, full, types.ErrUnsupportedField},
		"no container":        {"ADD", `{"cniVersion":"1.1.0","name":"n"}`, full[1:], types.ErrInvalidEnvironmentVariables},
		"args":                {"ADD", `{"cniVersion":"1.1.0","name":"n"}`, append(full, "CNI_ARGS=x"), types.ErrInvalidEnvironmentVariables},
		"command":             {"FLY", `{"cniVersion":"1.1.0","name":"n"}`, full, types.ErrInvalidEnvironmentVariables},
		"netns is a file":     {"ADD", `{"cniVersion":"1.1.0","name":"n"}`, append(full[:2:2], "CNI_NETNS=/etc/passwd"), types.ErrInvalidNetNS},
		"netns is away":       {"ADD", `{"cniVersion":"1.1.0","name":"n"}`, append(full[:2:2], "CNI_NETNS=/nowhere"), types.ErrInvalidNetNS},
		"netns is ours":       {"ADD", `{"cniVersion":"1.1.0","name":"n"}`, append(full[:2:2], "CNI_NETNS=/proc/self/ns/net"), types.ErrInvalidNetNS},
		"not JSON":            {"ADD", `{`, full, types.ErrDecodingFailure},
		"no name":             {"ADD", `{"cniVersion":"1.1.0"}`, full, types.ErrInvalidNetworkConfig},
		"mtu":                 {"ADD", `{"cniVersion":"1.1.0","name":"n","mtu":1}`, full, types.ErrInvalidNetworkConfig},
		"GC without a list":   {"GC", `{"cniVersion":"1.1.0","name":"n"}`, nil, types.ErrInvalidNetworkConfig},
		"GC of no list":       {"GC", `{"cniVersion":"1.1.0","name":"n","cni.dev/valid-attachments":"x"}`, nil, types.ErrInvalidNetworkConfig},
		"no prevResult":       {"CHECK", `{"cniVersion":"1.1.0","name":"n"}`, full, types.ErrInvalidNetworkConfig},
	} {
		if out, code := e.run(tc.command, tc.stdin, tc.vars...); code != tc.code {
			t.Errorf("%s: code %d, want %d: %s", name, code, tc.code, out)
		}
	}
	if out, code := e.run("VERSION", ""); code != 0 || !strings.Contains(out, `"1.1.0"`) || !strings.Contains(out, `"0.3.1"`) {
		t.Errorf("VERSION: %s", out)
	}
}

func TestLogFile(t *testing.T) {
	e := newEnv(t)
	startAgent(t, e.socket, map[string]cniapi.Request{})
	log := filepath.Join(e.dir, "cni.log")
	list := e.list("1.0.0", map[string]any{"logFile": log})
	if _, err := e.cni.AddNetworkList(t.Context(), list, e.runtime("c1")); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(data), "CNI ADD c1/eth0 (pod default/web)") || strings.Count(string(data), "\n") != 1 {
		t.Errorf("log %q, %v", data, err)
	}
}

// TestImportsAreLight: the binary must be small, because it is executed for every pod.
func TestImportsAreLight(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skipf("no go command: %v", err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		for _, heavy := range []string{"net/http", "crypto/tls", "text/template", "google.golang.org/", "github.com/prometheus/", "k8s.io/", "go.fd.io/"} {
			if dep == heavy || strings.HasSuffix(heavy, "/") && strings.HasPrefix(dep, heavy) {
				t.Errorf("contiv-cni depends on %s, which makes it slow to start", dep)
			}
		}
	}
}
