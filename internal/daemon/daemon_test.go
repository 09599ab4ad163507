package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/httpapi"
	"contiv.dev/vswitch/internal/kube"
	"contiv.dev/vswitch/internal/lifecycle"
	"contiv.dev/vswitch/internal/logs"
)

// TestFlags checks the sources of flags: the command line, then the environment, then the defaults.
func TestFlags(t *testing.T) {
	web, etcd, api, level := httpapi.Config{Address: "127.0.0.1:1"}, clusterdb.Config{}, kube.Config{}, "info"
	ran := false
	cmd := Command("contiv-x", "short", "about", func(context.Context) error { ran = true; return nil })
	web.RegisterFlags(cmd.Flags(), "something")
	etcd.RegisterFlags(cmd.Flags(), "an etcd")
	api.RegisterFlags(cmd.Flags())
	RegisterLogLevel(cmd.Flags(), &level)
	t.Setenv("CONTIV_ETCD_ENDPOINTS", "https://a:2379,https://b:2379")
	t.Setenv("CONTIV_LOG_LEVEL", "warn")
	cmd.SetArgs([]string{"--log-level=debug", "--http-read-token-file=/t"})
	if err := cmd.ExecuteContext(t.Context()); err != nil || !ran {
		t.Fatalf("%v, ran: %t", err, ran)
	}
	if len(etcd.Endpoints) != 2 || level != "debug" || web.Address != "127.0.0.1:1" || web.ReadTokenFile != "/t" {
		t.Errorf("etcd %v, level %s, http %+v", etcd, level, web)
	}
	t.Setenv("CONTIV_ETCD_INSECURE_TRANSPORT", "perhaps")
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "CONTIV_ETCD_INSECURE_TRANSPORT") {
		t.Errorf("a variable that makes no sense: %v", err)
	}
	t.Setenv("CONTIV_ETCD_INSECURE_TRANSPORT", "false")
	t.Setenv("CONTIV_ETCD_ENDPOINTS", "")
	cmd = Command("contiv-x", "short", "about", func(context.Context) error { t.Error("it ran"); return nil }, clusterdb.CheckFlags)
	(&clusterdb.Config{}).RegisterFlags(cmd.Flags(), "an etcd")
	cmd.SetArgs([]string{}) // with nil, cobra would use the arguments of the test binary
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "--etcd-endpoints") {
		t.Errorf("endpoints that were not filled in: %v", err)
	}
	t.Setenv("CONTIV_ETCD_ENDPOINTS", "https://a:2379")
	t.Setenv("CONTIV_ETCD_ENDPOINT", "https://b:2379")
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "did you mean CONTIV_ETCD_ENDPOINTS?") {
		t.Errorf("a misspelt variable: %v", err)
	}
	if _, _, err := NewLogger("contiv-x", "loud"); err == nil || !strings.Contains(err.Error(), "use debug, info") {
		t.Errorf("log level: %v", err)
	}
}

// program records the calls of its methods.
type program struct {
	did       []string
	makeFails error
}

func (p *program) Make(context.Context) error { p.did = append(p.did, "make"); return p.makeFails }
func (p *program) Start() error               { p.did = append(p.did, "start"); return nil }
func (p *program) Stop() error                { p.did = append(p.did, "stop"); return nil }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestRunStopsInAnyCase(t *testing.T) {
	group := func() *lifecycle.Group {
		return lifecycle.NewGroup(context.Background(), slog.New(slog.DiscardHandler))
	}
	broken := errors.New("broken")
	p := &program{makeFails: broken}
	if err := Run(t.Context(), quiet(), p, group(), func() { t.Error("it has not started") }); !errors.Is(err, broken) ||
		!slices.Equal(p.did, []string{"make", "stop"}) {
		t.Errorf("what cannot be made: %v, %v", err, p.did)
	}
	jobs := group()
	p = &program{}
	err := Run(t.Context(), quiet(), p, jobs, func() { jobs.Go("job", func(context.Context) error { return broken }) })
	if !errors.Is(err, broken) || !slices.Equal(p.did, []string{"make", "start", "stop"}) {
		t.Errorf("a job that fails: %v, %v", err, p.did)
	}
	ctx, cancel := context.WithCancel(t.Context())
	p = &program{}
	if err := Run(ctx, quiet(), p, group(), cancel); err != nil || p.did[len(p.did)-1] != "stop" {
		t.Errorf("told to end: %v, %v", err, p.did)
	}
}

// TestStartAndStopAreLogged checks that a stop logs one line with its reason when it begins, and one when it is complete.
func TestStartAndStopAreLogged(t *testing.T) {
	for _, tc := range []struct {
		p    *program
		want string
	}{{&program{}, "reason=signal"}, {&program{makeFails: errors.New("no etcd")}, `error="no etcd"`}} {
		var b bytes.Buffer
		log := logs.New(&b, slog.LevelInfo, nil)
		ctx, cancel := context.WithCancel(t.Context())
		_ = Run(ctx, log, tc.p, lifecycle.NewGroup(t.Context(), quiet()), cancel) // the error is returned by the program
		cancel()
		text := b.String()
		if strings.Count(text, "\n") != 2 || !strings.Contains(text, "msg=stopping "+tc.want) || !strings.Contains(text, "msg=stopped") {
			t.Errorf("the log has %q, want %s", text, tc.want)
		}
	}
}

// hanging is a program that hangs in its stop or in its start.
type hanging struct {
	program
	start bool
}

func (h *hanging) Start() error {
	if h.start {
		select {}
	}
	return nil
}

func (h *hanging) Stop() error { select {} }

// TestStopIsBounded checks that a part that hangs, in the start or in the stop, is reported and does not block the end of the
// process.
func TestStopIsBounded(t *testing.T) {
	for _, p := range []*hanging{{}, {start: true}} {
		stacks := standardError(t, func() {
			ctx, cancel := context.WithCancel(t.Context())
			l := &life{p: p, log: quiet(), jobs: lifecycle.NewGroup(t.Context(), quiet()), started: cancel}
			if p.start {
				cancel()
			}
			if err := l.within(ctx, 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not stop within 10ms") {
				t.Errorf("error %v", err)
			}
		})
		if want := map[bool]string{false: "(*hanging).Stop", true: "(*hanging).Start"}[p.start]; !strings.Contains(stacks, want) {
			t.Errorf("the goroutines do not have %s:\n%s", want, stacks)
		}
	}
}

// TestStopIsBoundedWithoutReader checks that the process ends even if no process reads standard error.
func TestStopIsBoundedWithoutReader(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = w
	defer func() { os.Stderr = stderr; _, _ = w.Close(), r.Close() }()
	_ = w.SetWriteDeadline(time.Now().Add(time.Minute))
	for range 16 { // each adds some kilobytes to it, which are never read
		ctx, cancel := context.WithCancel(t.Context())
		l := &life{p: &hanging{}, log: quiet(), jobs: lifecycle.NewGroup(t.Context(), quiet()), started: cancel}
		begun := time.Now()
		if err := l.within(ctx, time.Millisecond); err == nil || time.Since(begun) > 2*dumpLimit {
			t.Fatalf("%v after %s", err, time.Since(begun))
		}
		if time.Since(begun) >= dumpLimit {
			return
		}
	}
	t.Error("standard error never blocked")
}

// standardError returns the text that f writes to standard error.
func standardError(t *testing.T, f func()) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	stderr := os.Stderr
	os.Stderr = file
	defer func() { os.Stderr = stderr; _ = file.Close() }()
	f()
	data, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestHealth checks that probes report what is wrong, and that metrics are served.
func TestHealth(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "rest.sock")
	server, err := httpapi.New(httpapi.Config{Socket: socket}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ServeHealth(server, NewRegistry(), func() error { return nil }, func() error { return errors.New("etcd is away") })
	jobs := lifecycle.NewGroup(t.Context(), slog.New(slog.DiscardHandler))
	t.Cleanup(func() { _ = jobs.Stop(time.Minute) })
	if err := server.Start(jobs); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
	for path, want := range map[string]string{"/liveness": "ok", "/readiness": "etcd is away", "/metrics": "process_open_fds"} {
		resp, err := client.Get("http://x" + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || !strings.Contains(string(body), want) || (resp.StatusCode == 200) != (path != "/readiness") {
			t.Errorf("%s: %d %.200s %v", path, resp.StatusCode, body, err)
		}
	}
}

// TestFlagErrors checks that the error for a misspelt flag has a suggestion, and that other errors name the command that lists the
// flags.
func TestFlagErrors(t *testing.T) {
	for args, want := range map[string]string{
		"--etcd-endpoint=x": "unknown flag: --etcd-endpoint; did you mean --etcd-endpoints?",
		"--nothing-alike":   "unknown flag: --nothing-alike; p --help lists the flags",
	} {
		cmd := Command("p", "", "", func(context.Context) error { return nil })
		(&clusterdb.Config{}).RegisterFlags(cmd.Flags(), "etcd")
		cmd.SetArgs([]string{args})
		if err := cmd.Execute(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}
