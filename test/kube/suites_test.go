package kube

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// suite is a test suite of another project. Each takes ten minutes or more, so a suite runs only if -run names it: `make e2e
// CLUSTERS=installed-auto SUITES=netpol,cnp`.
type suite struct {
	name    string
	program string // lab/build.sh builds it on request
	tests   int    // expected number of tests: passed, failed, and skipped by the suite itself
	run     func(w *world, s suite, log string) (verdicts, error)
}

// suiteLimit is several times the duration of each suite on an idle machine with two cores.
const suiteLimit = 45 * time.Minute

func suites() []suite {
	return []suite{
		{"cnp", "cnp.test", 24, clusterNetworkPolicy},
		{"netpol", "e2e.test", 50, ginkgo(`\[sig-network\] Netpol`)},
		{"conformance", "e2e.test", 47, ginkgo(`\[sig-network\].*\[Conformance\]`)},
	}
}

// withSuites adds the requested suites to the cases.
func withSuites(to []testcase) []testcase {
	for _, s := range suites() {
		if suiteWanted(s.name) {
			to = append(to, testcase{s.name, s.test, byChart})
		}
	}
	return to
}

// suiteWanted reports whether -run names a suite.
func suiteWanted(name string) bool {
	f := flag.Lookup("test.run")
	return f != nil && regexp.MustCompile(`\b`+name+`\b`).MatchString(f.Value.String())
}

// worldLimit returns how long a cluster may be used.
func worldLimit() time.Duration {
	limit := 20 * time.Minute
	for _, s := range suites() {
		if suiteWanted(s.name) {
			limit += suiteLimit
		}
	}
	return limit
}

func (s suite) test(w *world) {
	if _, err := os.Stat(filepath.Join(cacheDir(), "bin", s.program)); err != nil {
		w.t.Skipf("%s is not built: test/kube/lab/build.sh %s", s.program, strings.TrimSuffix(s.program, ".test"))
	}
	// The log stays after the test, because it has the only explanation of a failure.
	log := filepath.Join(os.TempDir(), fmt.Sprintf("contiv-%s-%s.log", s.name, w.setup.name))
	w.routePods()
	start := time.Now()
	w.t.Logf("%s runs; its output: %s", s.name, log)
	got, err := s.run(w, s, log)
	if err != nil {
		w.t.Errorf("%s: %v\n%s", s.program, err, tail(log, 30))
	}
	w.t.Logf("%s on %s: %s; it took %s", s.name, w.setup.name, got, since(start))
	for _, name := range got.failed {
		w.t.Errorf("failed: %s", name)
	}
	if count := len(got.passed) + len(got.failed) + len(got.skipped); count != s.tests {
		w.t.Errorf("%d tests ran instead of %d", count, s.tests)
	}
	if len(got.passed) == 0 {
		w.t.Error("no test has passed")
	}
}

// routePods makes pods reachable for the API server's proxy, because the API server does not run on a node.
func (w *world) routePods() {
	w.t.Helper()
	for _, p := range w.webPods("proxied", 1) {
		n := w.node(p.Spec.NodeName)
		via, via6 := n.ip(), n.ip6()
		if w.onVPP(n) {
			via, via6 = n.vppIP(), n.vppIP6()
		}
		for _, args := range [][]string{{"-4", p.v4() + "/24", via}, {"-6", p.v6() + "/64", via6}} {
			to := netip.MustParsePrefix(args[1]).Masked().String()
			out, err := exec.CommandContext(w.ctx, "ip", args[0], "route", "replace", to, "via", args[2]).CombinedOutput()
			if err != nil {
				w.t.Fatalf("route to %s by %s: %v: %s", to, args[2], err, out)
			}
		}
	}
	w.deletePods("proxied")
}

// verdicts are the names of a suite's tests.
type verdicts struct{ passed, failed, skipped []string }

func (v *verdicts) add(state, name string) {
	switch strings.ToLower(state) {
	case "passed", "pass":
		v.passed = append(v.passed, name)
	case "skipped", "skip", "pending":
		v.skipped = append(v.skipped, name)
	default:
		v.failed = append(v.failed, name)
	}
}

func (v verdicts) String() string {
	text := fmt.Sprintf("%d passed, %d failed, %d skipped", len(v.passed), len(v.failed), len(v.skipped))
	for _, name := range v.skipped {
		text += "\n  skipped: " + name
	}
	return text
}

// program runs a suite's program; its output goes to the log. A failed test of the suite is not an error.
func (w *world) program(log, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(w.ctx, suiteLimit+2*time.Minute)
	defer cancel()
	out, err := os.Create(log)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, filepath.Join(cacheDir(), "bin", name), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(runDir, "kubeconfig"))
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // the programs then print where they are
	cmd.WaitDelay = time.Minute
	err = cmd.Run()
	if ended := (*exec.ExitError)(nil); ctx.Err() == nil && errors.As(err, &ended) && ended.Exited() {
		return nil
	}
	return err
}

// ginkgo returns a function that runs the tests of Kubernetes whose names match.
func ginkgo(focus string) func(*world, suite, string) (verdicts, error) {
	return func(w *world, s suite, log string) (v verdicts, err error) {
		report := filepath.Join(w.t.TempDir(), "report.json")
		err = w.program(log, s.program, "--kubeconfig="+filepath.Join(runDir, "kubeconfig"), "--provider=skeleton",
			"--ginkgo.focus="+focus, "--ginkgo.timeout="+suiteLimit.String(), "--ginkgo.no-color", "--ginkgo.silence-skips",
			"--ginkgo.json-report="+report)
		data, missing := os.ReadFile(report)
		if errors.Is(missing, fs.ErrNotExist) {
			return v, errors.Join(err, missing)
		}
		read, bad := ginkgoVerdicts(data)
		return read, errors.Join(err, missing, bad)
	}
}

// ginkgoVerdicts parses a report, which also has the tests that were not selected: skipped without a reason.
func ginkgoVerdicts(report []byte) (v verdicts, err error) {
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts []string
			LeafNodeType            string
			LeafNodeText            string
			State                   string
			Failure                 struct{ Message string }
		}
	}
	if err := json.Unmarshal(report, &suites); err != nil {
		return v, err
	}
	for _, s := range suites {
		for _, r := range s.SpecReports {
			name := strings.Join(append(slices.Clone(r.ContainerHierarchyTexts), r.LeafNodeText), " ")
			switch {
			case r.State == "skipped" && r.Failure.Message == "":
			case r.LeafNodeType != "It" && r.State == "passed":
			default:
				v.add(r.State, strings.TrimSpace(r.LeafNodeType+" "+name))
			}
		}
	}
	return v, nil
}

// clusterNetworkPolicy runs the conformance tests of sigs.k8s.io/network-policy-api, with its CRD.
func clusterNetworkPolicy(w *world, s suite, log string) (v verdicts, err error) {
	w.clusterPolicies()
	err = w.program(log, s.program, "-test.v", "-test.timeout="+suiteLimit.String())
	data, missing := os.ReadFile(log)
	return goVerdicts(string(data)), errors.Join(err, missing)
}

var goVerdict = regexp.MustCompile(`(?m)^    --- (PASS|FAIL|SKIP): TestConformance/(\S+) `)

// goVerdicts parses the output of a program of Go tests.
func goVerdicts(output string) (v verdicts) {
	for _, m := range goVerdict.FindAllStringSubmatch(output, -1) {
		v.add(m[1], m[2])
	}
	if strings.Contains(output, "\n--- FAIL: TestConformance ") && len(v.failed) == 0 {
		v.add("FAIL", "the preparation")
	}
	return v
}

func TestSuiteVerdicts(t *testing.T) {
	report := `[{"SpecReports":[
{"LeafNodeType":"It","LeafNodeText":"a","ContainerHierarchyTexts":["x"],"State":"passed"},
{"LeafNodeType":"It","LeafNodeText":"b","State":"failed","Failure":{"Message":"no"}},
{"LeafNodeType":"It","LeafNodeText":"c","State":"timedout"},
{"LeafNodeType":"It","LeafNodeText":"d","State":"skipped","Failure":{"Message":"no IPv9"}},
{"LeafNodeType":"It","LeafNodeText":"not meant","State":"skipped"},
{"LeafNodeType":"SynchronizedBeforeSuite","State":"passed"},
{"LeafNodeType":"SynchronizedAfterSuite","State":"panicked"}]}]`
	v, err := ginkgoVerdicts([]byte(report))
	if want := "[It x a] [It b It c SynchronizedAfterSuite] [It d]"; err != nil || fmt.Sprint(v.passed, v.failed, v.skipped) != want {
		t.Errorf("%v, %v instead of %s", v, err, want)
	}
	v = goVerdicts("--- FAIL: TestConformance (3.1s)\n    --- PASS: TestConformance/a (1s)\n        --- FAIL: TestConformance/b/sub (1s)\n" +
		"    --- FAIL: TestConformance/b (1s)\n    --- SKIP: TestConformance/c (0s)\n")
	if got, want := fmt.Sprint(v.passed, v.failed, v.skipped), "[a] [b] [c]"; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
	if v = goVerdicts("=== RUN\n--- FAIL: TestConformance (3.1s)\n"); len(v.failed) != 1 {
		t.Errorf("failed preparation: %v", v)
	}
}
