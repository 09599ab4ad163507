package diag

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// mux serves a Service as httpapi does, without authentication.
type mux struct{ *http.ServeMux }

func (m mux) RegisterHTTPHandler(path string, h http.HandlerFunc, _ ...string) { m.HandleFunc(path, h) }

// fakeVPP records commands and answers from a table.
type fakeVPP struct {
	ran     []string
	answers map[string]string
	refuse  string // commands that begin with this
}

func (f *fakeVPP) run(_ context.Context, command string) (string, error) {
	f.ran = append(f.ran, command)
	if f.refuse != "" && strings.HasPrefix(command, f.refuse) {
		return "", errors.New("unknown input")
	}
	return f.answers[command], nil
}

func serve(t *testing.T, deps Deps) *httptest.Server {
	t.Helper()
	m := mux{http.NewServeMux()}
	deps.Log, deps.HTTP = slog.New(slog.DiscardHandler), m
	if deps.Ready == nil {
		deps.Ready = func() error { return nil }
	}
	if deps.Pods == nil {
		deps.Pods = func() []Pod { return nil }
	}
	if deps.Interfaces == nil {
		deps.Interfaces = func() []Interface { return []Interface{{Index: 6, Logical: "vpp-tap-x", Pod: "default/a"}} }
	}
	if deps.Dir == "" {
		deps.Dir = t.TempDir()
	}
	New(deps)
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	return s
}

func post(t *testing.T, url string, body any) (int, string) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var out bytes.Buffer
	if _, err := out.ReadFrom(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, out.String()
}

func TestOnlyReadingCommandsAreReadOnly(t *testing.T) {
	for _, command := range []string{
		"show version", "show interface", "show interface tap1", "show ip fib table 1 10.1.2.0/24", "show ip6 fib " +
			"fd10::/64", "show trace max 50",
		"  show   errors  ", "show bridge-domain 1 detail", "show nat44 sessions detail", "show interface features host-eth1",
	} {
		if err := readOnly(command); err != nil {
			t.Errorf("%q: %v", command, err)
		}
	}
	for _, command := range []string{
		"", " ", "create loopback interface", "sh version", "show", "show version create loopback interface",
		"show version\ncreate loopback interface", "show ip fib ip route add 10.0.0.0/8 via drop", "show interface " +
			"set", "show errors clear errors",
		"show interface tap1 set interface state tap1 down", "show version; quit", "show trace max " +
			"all", "show\x00version", "clear errors",
		"show ip fib table one", "exec /tmp/x", "show interface quit", strings.Repeat("x", 600), "show vérsion",
	} {
		if readOnly(command) == nil {
			t.Errorf("%q counts as read-only", command)
		}
	}
}

func TestCLIEndpointWritesOnlyWhereBothSidesWantIt(t *testing.T) {
	for _, tc := range []struct {
		name    string
		allowed bool
		req     CLIRequest
		status  int
	}{
		{"reads", false, CLIRequest{Command: "show version"}, 200},
		{"writes without asking", true, CLIRequest{Command: "clear errors"}, 403},
		{"writes where not allowed", false, CLIRequest{Command: "clear errors", Write: true}, 403},
		{"writes", true, CLIRequest{Command: "clear errors", Write: true}, 200},
		{"two lines", true, CLIRequest{Command: "clear errors\nclear trace", Write: true}, 403},
	} {
		vpp := &fakeVPP{}
		s := serve(t, Deps{CLI: vpp.run, Info: AgentInfo{CLIWrite: tc.allowed}})
		status, body := post(t, s.URL+CLIPath, tc.req)
		if ran := len(vpp.ran) > 0; status != tc.status || ran != (tc.status == 200) {
			t.Errorf("%s: %d %s, ran %q", tc.name, status, body, vpp.ran)
		}
	}
	s := serve(t, Deps{Info: AgentInfo{Dataplane: "linux"}})
	if status, body := post(t, s.URL+CLIPath, CLIRequest{Command: "show version"}); status != 403 || !strings.Contains(body,
		"no VPP") {
		t.Errorf("without VPP: %d %s", status, body)
	}
}

func TestRequestsAreChecked(t *testing.T) {
	s := serve(t, Deps{CLI: (&fakeVPP{}).run})
	ip := netip.MustParseAddr("10.1.1.1")
	for _, tc := range []struct {
		path   string
		body   any
		status int
	}{
		{ProbePath, ProbeRequest{Proto: "icmp"}, 400},
		{ProbePath, ProbeRequest{To: ip, Proto: "tcp"}, 400},
		{ProbePath, ProbeRequest{To: ip, Proto: "icmp", Port: 1}, 400},
		{ProbePath, ProbeRequest{To: ip, Proto: "gre"}, 400},
		{ProbePath, ProbeRequest{To: ip, Proto: "icmp", Count: 100000}, 400},
		{ProbePath, ProbeRequest{To: ip, Proto: "icmp", TimeoutMs: -1}, 400},
		{ProbePath, ProbeRequest{To: ip, Proto: "icmp", Pod: "nobody"}, 404},
		{ProbePath, "text", 400},
		{TracePath, TraceRequest{Source: ip, Proto: "icmp"}, 400},
		{TracePath, TraceRequest{Source: ip, Dest: netip.MustParseAddr("fd::1"), Proto: "icmp"}, 400},
		{TracePath, TraceRequest{Source: ip, Dest: ip, Proto: "icmp", Packets: 100000}, 400},
		{TraceStopPath, TraceEvent{ID: "1"}, 404},
	} {
		if status, body := post(t, s.URL+tc.path, tc.body); status != tc.status {
			t.Errorf("%s %+v: %d %s, want %d", tc.path, tc.body, status, body, tc.status)
		}
	}
}

// recordTrace begins a recording and returns its ID and a function that waits for its end.
func recordTrace(t *testing.T, ctx context.Context, url string) (id string, rest func() TraceEvent, status int) {
	t.Helper()
	ip := netip.MustParseAddr("10.1.1.1")
	data, err := json.Marshal(TraceRequest{Source: ip, Dest: ip.Next(), Proto: "icmp"})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+TracePath, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	dec := json.NewDecoder(resp.Body)
	next := func() (ev TraceEvent) {
		if err := dec.Decode(&ev); err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		return ev
	}
	if resp.StatusCode != http.StatusOK {
		return "", nil, resp.StatusCode
	}
	return next().ID, next, resp.StatusCode
}

const errorsBefore = "   Count                  Node                              Reason               Severity \n" +
	"         1             ip4-input                     ip4 ttl <= 1                      error  \n"

func TestTraceIsOneAtATimeAndLeavesNothingBehind(t *testing.T) {
	vpp := &fakeVPP{answers: map[string]string{
		"show errors": errorsBefore, "show trace max 1800": "Packet 1", "show interface": "tap1   6   up   9000/0/0/0\n  rx " +
			"packets 1\n",
	}, refuse: "trace add dpdk"}
	s := serve(t, Deps{CLI: vpp.run})
	id, rest, _ := recordTrace(t, t.Context(), s.URL)
	if _, _, status := recordTrace(t, t.Context(), s.URL); status != http.StatusConflict {
		t.Errorf("a second recording meanwhile: %d", status)
	}
	vpp.answers["show errors"] = strings.Replace(errorsBefore, "  1  ", "  4  ", 1)
	if status, body := post(t, s.URL+TraceStopPath, TraceEvent{ID: id}); status != 200 {
		t.Fatalf("stop: %d %s", status, body)
	}
	c := rest().Capture
	if c == nil || c.Text != "Packet 1" || len(c.Interfaces) != 1 || c.Interfaces[0] != (Interface{6, "tap1", "vpp-tap-x",
		"default/a"}) {
		t.Fatalf("capture: %+v", c)
	}
	if len(c.Errors) != 1 || c.Errors[0] != (ErrorCount{"ip4-input", "ip4 ttl <= 1", 3}) {
		t.Errorf("counters that rose: %+v", c.Errors)
	}
	if n := strings.Count(strings.Join(vpp.ran, "\n"), "clear trace"); n != 2 {
		t.Errorf("the trace was cleared %d times, want before and after:\n%q", n, vpp.ran)
	}
}

func TestTraceEndsWithItsClient(t *testing.T) {
	vpp := &fakeVPP{answers: map[string]string{}}
	s := serve(t, Deps{CLI: vpp.run})
	ctx, gone := context.WithCancel(t.Context())
	recordTrace(t, ctx, s.URL)
	gone()
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		_, _, status := recordTrace(t, t.Context(), s.URL)
		if status == http.StatusOK {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("the recording of a client that is gone goes on")
}

func TestTraceFailsWhereVPPTracesNothing(t *testing.T) {
	s := serve(t, Deps{CLI: (&fakeVPP{refuse: "trace add"}).run})
	if _, _, status := recordTrace(t, t.Context(), s.URL); status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
}

// TestListener checks that a program that listens to traced packets is detected in the kernel's list of sockets.
func TestListener(t *testing.T) {
	const text = "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n" +
		"00000000f1e2c7d1 0   4711       00000100 7        0        0     2        0        1\n" +
		"00000000f1e2c7d2 12  4711       00000000 7        0        0     2        0        2\n" +
		"00000000f1e2c7d3 12  4711       00000100 96       0        0     2        0        3\n"
	for inode, want := range map[string]bool{"1": false, "2": false, "3": true, "4": false} {
		listens, unread := findListener(text, map[string]bool{inode: true})
		if listens != want || want && unread != 96 {
			t.Errorf("socket %s: listens %t, %d bytes unread", inode, listens, unread)
		}
	}
	if listens, _, err := listener(os.Getpid()); listens || err != nil {
		t.Errorf("this test listens: %t, %v", listens, err)
	}
}

func TestVPPsRouteToTheReceiver(t *testing.T) {
	const text = "ipv4-VRF:1, fib_index:1, flow hash:[src dst ] epoch:0 flags:none locks:[CLI:1, ]\n" +
		"10.1.2.2/32 fib:1 index:14 locks:2\n  CLI refs:1 entry-flags:no-attached-export, src-flags:added,contributing,active,\n" +
		"    path-list:[26] locks:2 flags:shared, uPRF-list:14 len:0 itfs:[]\n" +
		"  API refs:1 src-flags:added,\n\n forwarding:   unicast-ip4-chain\n" +
		"  [@0]: dpo-load-balance: [proto:ip4 index:15 buckets:1 uRPF:14 to:[0:0]]\n    [0] [@0]: dpo-drop ip4\n"
	if e, ok := parseFIB(text); !ok || e != (fibEntry{"10.1.2.2/32", "CLI", "dpo-drop ip4"}) {
		t.Errorf("%+v, %t", e, ok)
	}
	if e, ok := parseFIB("nothing"); ok {
		t.Errorf("%+v", e)
	}
}

func TestParsersOfVPPsTables(t *testing.T) {
	threads := errorsBefore + errorsBefore
	if got := parseErrors(threads); got[errorKey{"ip4-input", "ip4 ttl <= 1"}] != 2 {
		t.Errorf("counters of two threads: %v", got)
	}
	if got := parseErrors("garbage\n1 2\n"); len(got) != 0 {
		t.Errorf("garbage: %v", got)
	}
	got := parseInterfaces("              Name               Idx    State\nlocal0    0     down   0/0/0/0\ntap1   6   up  " +
		"9000\n   drops 4 1\n")
	if len(got) != 2 || got[6] != "tap1" {
		t.Errorf("interfaces: %v", got)
	}
}

func TestAgentSaysWhyItIsNotReady(t *testing.T) {
	s := serve(t, Deps{Ready: func() error { return errors.New("no etcd") }, Info: AgentInfo{Node: "n"}})
	resp, err := http.Get(s.URL + AgentPath)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var info AgentInfo
	if err := json.NewDecoder(resp.Body).Decode(&info); err != nil || info.Node != "n" || !slices.Equal(info.Problems,
		[]string{"no etcd"}) {
		t.Errorf("%+v %v", info, err)
	}
}

// TestZonesAreRefused checks that the zone of an IPv6 address, which may be any text, is passed neither to VPP's command line
// nor to nft.
func TestZonesAreRefused(t *testing.T) {
	vpp := &fakeVPP{answers: map[string]string{}}
	srv := serve(t, Deps{CLI: vpp.run})
	const zone = "%x create loopback interface\nflush ruleset"
	plain := func() map[string]any {
		return map[string]any{"source": "fd10::1", "dest": "fd10::2", "proto": "tcp", "port": 80, "service": true}
	}
	for field, value := range map[string]any{
		"source": "fe80::1" + zone, "dest": "fe80::1" + zone, "otherSources": []string{"fe80::1" + zone},
		"backends": []string{"[fe80::1" + zone + "]:80"},
	} {
		req := plain()
		req[field] = value
		if status, text := post(t, srv.URL+TracePath, req); status != http.StatusBadRequest || !strings.Contains(text, "zone") {
			t.Errorf("%s with a zone: %d %s", field, status, text)
		}
	}
	if len(vpp.ran) > 0 {
		t.Errorf("VPP was told %q", vpp.ran)
	}
	if readOnly("show ip6 fib fe80::1%restart") == nil {
		t.Error("an address with a zone is taken for one that VPP reads to its end")
	}
}
