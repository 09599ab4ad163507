package vppfake_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.fd.io/govpp/adapter/socketclient"
	"go.fd.io/govpp/api"
	"go.fd.io/govpp/binapi/ethernet_types"
	"go.fd.io/govpp/binapi/fib_types"
	"go.fd.io/govpp/binapi/ip_types"
	"go.fd.io/govpp/binapi/memclnt"
	"go.fd.io/govpp/core"

	"contiv.dev/vswitch/dataplane/vpp/conn"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
)

// The contract: every scenario is a list of API calls. VPP's replies are written as text, field by field, and stored in testdata/contract. The
// fake must return the same replies, and so must the real VPP where it is available; -update writes the replies of the real VPP again.
var update = flag.Bool("update", false, "write testdata/contract from the real VPP")

// scenario is one list of API calls, run against a VPP that has just started.
type scenario struct {
	name string
	run  func(*script)
}

func scenarios() []scenario {
	return slices.Concat(interfaceScenarios(), addressScenarios(), routeScenarios(), neighborScenarios(),
		l2Scenarios(), l2MoreScenarios(), tunnelScenarios(), queueScenarios(), miscScenarios(), natScenarios(),
		natTableScenarios(),
		aclScenarios(), contivScenarios())
}

func TestContractFake(t *testing.T) {
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			clock := &fakeClock{}
			f := startFake(t, vppfake.Config{Seed: 1, Host: noNamespaces{}, Workers: sc.workers(), Plugin: sc.plugin(), Now: clock.now})
			want, err := os.ReadFile(goldenPath(sc.name))
			if err != nil {
				t.Fatal(err)
			}
			got := transcript(t, f.Socket(), clock.advance, sc)
			if got != string(want) {
				t.Errorf("fake differs from VPP (-VPP +fake):\n%s", diff(string(want), got))
			}
			refused := map[string]int{"protocol": 4}[sc.name]
			if r := f.Refused(); len(r) != refused {
				t.Errorf("refused: %v", r)
			}
		})
	}
}

func TestContractVPP(t *testing.T) {
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			v := startVPP(t, sc.workers(), sc.plugin())
			checkGolden(t, goldenPath(sc.name), transcript(t, v.Socket(), advance(t, v), sc))
		})
	}
}

// pluginSource matches the source of a route that a plugin of VPP creates. VPP assigns these numbers to plugins as it loads them, so they
// depend on the plugins that a VPP has and loads. VPP's own sources end at 22.
var pluginSource = regexp.MustCompile(`Src:(2[3-9]|[3-9]\d)\b`)

func anySource(text string) string { return pluginSource.ReplaceAllString(text, "Src:plugin") }

// checkGolden compares VPP's replies with those stored in the file, or writes the file.
func checkGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if anySource(got) != anySource(string(want)) {
		t.Errorf("VPP differs from the recorded contract (-recorded +VPP):\n%s", diff(string(want), got))
	}
}

// startFake starts a fake that listens on its own socket.
func startFake(t testing.TB, cfg vppfake.Config) *vppfake.Fake {
	t.Helper()
	f := vppfake.New(cfg)
	t.Cleanup(func() { f.Close() })
	if err := f.Listen(filepath.Join(t.TempDir(), "api.sock")); err != nil {
		t.Fatal(err)
	}
	return f
}

// noNamespaces is a host without network namespaces, like the host of the real VPP.
type noNamespaces struct{}

func (noNamespaces) CreateTap(r vppfake.TapRequest) error {
	if r.Namespace != "" {
		return os.ErrNotExist
	}
	return nil
}
func (noNamespaces) DeleteTap(vppfake.TapRequest) error { return nil }
func (noNamespaces) OpenAfPacket(string) error          { return nil }
func (noNamespaces) CloseAfPacket(string) error         { return nil }

func goldenPath(name string) string { return filepath.Join("testdata", "contract", name+".txt") }

// transcript runs sc over its own connection.
func transcript(t *testing.T, socket string, advance func(time.Duration), sc scenario) string {
	t.Helper()
	s := newScript(t, socket, advance)
	sc.run(s)
	return s.out.String()
}

// dial connects a plain govpp client.
func dial(t testing.TB, socket string) *core.Connection {
	t.Helper()
	client := socketclient.NewVppClient(socket)
	client.SetConnectTimeout(time.Minute)
	conn, err := core.Connect(client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Disconnect)
	return conn
}

// script is one run of a scenario: it sends messages and records the replies.
type script struct {
	t      *testing.T
	conn   api.Connection
	socket string
	// advance advances VPP's clock: no scenario waits in real time.
	advance func(time.Duration)
	lane    *conn.Lane // see collectOwn; nil until first used
	out     strings.Builder
}

// note writes a heading.
func (s *script) note(format string, args ...any) { fmt.Fprintf(&s.out, "# "+format+"\n", args...) }

// do sends a request that has one reply.
func (s *script) do(req api.Message) api.Message {
	s.t.Helper()
	reply := newMessage(s.t, req.GetMessageName()+"_reply")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := s.conn.Invoke(ctx, req, reply); err != nil {
		s.t.Fatalf("%s: %v", text(req), err)
	}
	s.line("%s\n  -> %s", text(req), text(reply))
	return reply
}

// dump sends a dump request and records its details in the order of their text.
func (s *script) dump(req api.Message) []api.Message {
	s.t.Helper()
	details := s.collect(req)
	lines := make([]string, 0, len(details))
	for _, d := range details {
		lines = append(lines, fold("  "+strings.TrimPrefix(text(d), d.GetMessageName())))
	}
	slices.Sort(lines)
	s.line("%s\n%s", text(req), strings.Join(lines, "\n"))
	return details
}

func (s *script) collect(req api.Message) []api.Message {
	s.t.Helper()
	if strings.HasPrefix(req.GetMessageName(), "contiv_") {
		return s.collectOwn(req)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	stream, err := s.conn.NewStream(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	defer stream.Close()
	for _, m := range []api.Message{req, &memclnt.ControlPing{}} {
		if err := stream.SendMsg(m); err != nil {
			s.t.Fatal(err)
		}
	}
	var details []api.Message
	for {
		m, err := stream.RecvMsg()
		if err != nil {
			s.t.Fatalf("%s: %v", text(req), err)
		}
		if _, ok := m.(*memclnt.ControlPingReply); ok {
			return details
		}
		details = append(details, m)
	}
}

func (s *script) line(format string, args ...any) {
	line := fold(fmt.Sprintf(format, args...))
	s.out.WriteString(strings.TrimRight(line, "\n") + "\n")
}

// fold replaces values that differ from run to run or have no meaning: stats indices, ages, random MACs, run-time directories.
func fold(line string) string {
	for _, f := range []struct{ pattern, instead string }{
		{`\{StatsIndex:[0-9~]+ ?`, "{"},
		{` StatsIndex:[0-9~]+`, ""},
		{`\bAge:[0-9.e+-]+ `, ""},
		{`02:fe:[0-9a-f:]{11}`, "02:fe:RANDOM"},
		{`"[^"]*/memif.sock"`, `"RUN/memif.sock"`},
		{`VpePID:[0-9]+`, "VpePID:PID"},
		{` (LastHeard|TimeSinceLastHeard):[0-9]+`, ""},
	} {
		line = regexp.MustCompile(f.pattern).ReplaceAllString(line, f.instead)
	}
	return line
}

// newMessage returns a message with the given name from govpp's registry.
func newMessage(t *testing.T, name string) api.Message {
	t.Helper()
	for _, byName := range api.GetRegisteredMessages() {
		for _, m := range byName {
			if m.GetMessageName() == name {
				return reflect.New(reflect.TypeOf(m).Elem()).Interface().(api.Message)
			}
		}
	}
	t.Fatalf("no message %s", name)
	return nil
}

// text returns a message as text, with the fields that are not zero.
func text(m api.Message) string {
	return m.GetMessageName() + fields(reflect.ValueOf(m).Elem())
}

func fields(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case ip_types.Prefix:
		return x.String()
	case ip_types.AddressWithPrefix:
		return x.String()
	case ip_types.Address:
		return x.String()
	case ethernet_types.MacAddress:
		return x.String()
	case fib_types.FibPath:
		return pathText(x)
	case fmt.Stringer:
		return x.String()
	}
	switch v.Kind() {
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				parts = append(parts, v.Type().Field(i).Name+":"+fields(v.Field(i)))
			}
		}
		return "{" + strings.Join(parts, " ") + "}"
	case reflect.Slice, reflect.Array:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = fields(v.Index(i))
		}
		return "[" + strings.Join(parts, " ") + "]"
	case reflect.Uint32:
		if v.Uint() == 1<<32-1 {
			return "~0"
		}
	case reflect.String:
		return fmt.Sprintf("%q", v.String())
	}
	return fmt.Sprint(v.Interface())
}

func pathText(p fib_types.FibPath) string {
	nh := ""
	switch p.Proto {
	case fib_types.FIB_API_PATH_NH_PROTO_IP4:
		a := p.Nh.Address.GetIP4()
		nh = a.String()
	case fib_types.FIB_API_PATH_NH_PROTO_IP6:
		a := p.Nh.Address.GetIP6()
		nh = a.String()
	}
	return fmt.Sprintf("(via %s if %s table %d rpf %d w %d pref %d type %d flags %d proto %d labels %d)", nh,
		fields(reflect.ValueOf(p.SwIfIndex)), p.TableID, p.RpfID, p.Weight, p.Preference, p.Type, p.Flags, p.Proto, p.NLabels)
}

// diff returns the lines that only one of the texts has, with one line of context before.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	n, m := len(w), len(g)
	lcs := make([][]int, n+1)
	for i := range lcs {
		lcs[i] = make([]int, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			if w[i] == g[j] {
				lcs[i][j] = lcs[i+1][j+1] + 1
			} else {
				lcs[i][j] = max(lcs[i+1][j], lcs[i][j+1])
			}
		}
	}
	var out []string
	context := ""
	for i, j := 0, 0; i < n || j < m; {
		switch {
		case i < n && j < m && w[i] == g[j]:
			if !strings.HasPrefix(w[i], "  ") {
				context = w[i]
			}
			i, j = i+1, j+1
		case j >= m || i < n && lcs[i+1][j] >= lcs[i][j+1]:
			out = append(out, context, "-"+w[i])
			i++
		default:
			out = append(out, context, "+"+g[j])
			j++
		}
	}
	return strings.Join(slices.Compact(out), "\n")
}
