package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/dataplane/vpp/vppfake"
	"contiv.dev/vswitch/plugins/controller/api"
	"contiv.dev/vswitch/plugins/podmanager"
	"contiv.dev/vswitch/test/testbed/poll"
)

// TestAnyOrderEndsTheSame checks that after any sequence of pods, failures and crashes VPP has the configuration that an agent
// would make on a new VPP. CONTIV_E2E_SEQUENCE=<seed> repeats one sequence, CONTIV_E2E_BUDGET=10m runs more of them.
func TestAnyOrderEndsTheSame(t *testing.T) { anyOrder(t, 15*time.Second, false) }

// TestServicesInAnyOrder is TestAnyOrderEndsTheSame with services, their endpoints and the nodes of Kubernetes, including objects
// that the API server would reject. After every event the result of the updates must equal that of a resync.
func TestServicesInAnyOrder(t *testing.T) { anyOrder(t, 10*time.Second, true) }

func anyOrder(t *testing.T, budget time.Duration, services bool) {
	rng := random(t)
	if testing.Short() {
		budget = 5 * time.Second
	}
	if d, err := time.ParseDuration(os.Getenv("CONTIV_E2E_BUDGET")); err == nil {
		budget = d
	}
	var mu sync.Mutex
	kinds := map[string]int{}
	done := 0
	seeds := make([]uint64, 20000)
	for i := range seeds {
		seeds[i] = rng.Uint64()
	}
	if one, err := strconv.ParseUint(os.Getenv("CONTIV_E2E_SEQUENCE"), 10, 64); err == nil {
		seeds = []uint64{one}
	}
	end := time.Now().Add(budget)
	err := parallel(3, seeds, func(seed uint64) error {
		if time.Now().After(end) {
			return nil
		}
		story, err := runSequence(t.TempDir(), seed, services)
		mu.Lock()
		defer mu.Unlock()
		done++
		if err == nil {
			return nil
		}
		// Only one failure of each kind is logged in full.
		kind := numbers.ReplaceAllString(err.Error(), "N")
		kind = kind[:min(len(kind), 80)]
		if kinds[kind]++; kinds[kind] == 1 && len(kinds) <= 8 {
			t.Errorf("CONTIV_E2E_SEQUENCE=%d: %v\n%s", seed, brief(err), strings.Join(story, "\n"))
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d sequences", done)
	for kind, n := range kinds {
		t.Errorf("%d times: %s", n, kind)
	}
}

// numbers matches the parts in which failures of one kind differ.
var numbers = regexp.MustCompile(`[0-9]+|vpp[0-9a-f]{12}|afpacket|vpp-tap`)

// sequence is one random sequence of events.
type sequence struct {
	*world
	rng    *rand.Rand
	useTAP bool
	live   []*podmanager.Attachment
	made   int
	story  []string
}

// runSequence runs a sequence and checks the result.
func runSequence(dir string, seed uint64, services bool) (story []string, err error) {
	defer os.RemoveAll(dir)
	rng := rand.New(rand.NewPCG(seed, 2))
	fake := vppfake.New(vppfake.Config{Seed: seed})
	defer fake.Close()
	if err := fake.Listen(filepath.Join(dir, "vpp.sock")); err != nil {
		return nil, err
	}
	s := &sequence{rng: rng, useTAP: rng.IntN(2) == 0}
	var kube *objects
	if services {
		kube = newObjects(rng)
	}
	if s.world, err = newWorld(dir, fake, &kernel{values: map[string]proto.Message{}}, s.useTAP, kube); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute) // long enough for a busy machine
	defer cancel()
	for range 5 + rng.IntN(35) {
		if err := s.step(ctx); err != nil {
			return s.story, errors.Join(err, s.stop())
		}
	}
	fake.Faults.Clear()
	fake.Unfreeze()
	if err := s.finish(ctx); err != nil {
		return s.story, errors.Join(err, s.stop())
	}
	return s.story, s.stop()
}

func (s *sequence) report(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf(format, args...))
}

// step makes one random event.
func (s *sequence) step(ctx context.Context) error {
	kinds := 100
	if s.kube != nil {
		kinds = 160
	}
	switch n := s.rng.IntN(kinds); {
	case n >= 100:
		ev := s.kube.change()
		s.report("%s", ev)
		return s.ctl.PushEvent(ev)
	case n < 40:
		s.made++
		id := podmanager.AttachmentID{ContainerID: fmt.Sprintf("c%d", s.made), IfName: "eth0"}
		return s.addPod(ctx, &podmanager.Attachment{
			ID: id, Pod: podmanager.PodID{Namespace: "default", Name: fmt.Sprintf("p%d", s.rng.IntN(10))}, Netns: "/run/netns/" + id.ContainerID,
		})
	case n < 47 && len(s.live) > 0:
		return s.addPod(ctx, s.live[s.rng.IntN(len(s.live))])
	case n < 70 && len(s.live) > 0:
		return s.deletePod(ctx, s.rng.IntN(len(s.live)))
	case n < 77:
		method := []api.EventMethodType{api.FullResync, api.UpstreamResync, api.DownstreamResync}[s.rng.IntN(3)]
		_, err := s.ctl.Resync(ctx, method)
		s.report("%s: %.200v", method, err)
	case n < 82:
		s.report("VPP crashes")
		s.fake.Crash()
	case n < 86:
		return s.restart()
	default:
		f := s.fault()
		s.report("fault %s", faultText(f))
		s.fake.Faults.Add(f)
	}
	return ctx.Err()
}

// fault returns a random fault of one of the next requests.
func (s *sequence) fault() vppfake.Fault {
	f := vppfake.Fault{Message: "*", WritesOnly: s.rng.IntN(4) > 0, Nth: 1 + s.rng.IntN(12), Times: 1}
	switch s.rng.IntN(6) {
	case 0, 1:
		f.Retval, f.WritesOnly = []int32{-1, -7, -11, -56}[s.rng.IntN(4)], true
	case 2:
		f.Disconnect = true
	case 3:
		f.ApplyThenDisconnect = true
	case 4:
		f.Crash = true
	default:
		f.LostReply = true
	}
	return f
}

// faultText describes a fault.
func faultText(f vppfake.Fault) string {
	text := fmt.Sprintf("at request %d (writes only: %t): ", f.Nth, f.WritesOnly)
	switch {
	case f.Disconnect:
		return text + "disconnect"
	case f.ApplyThenDisconnect:
		return text + "apply, then disconnect"
	case f.Crash:
		return text + "crash"
	case f.LostReply:
		return text + "the reply is lost"
	}
	return text + fmt.Sprintf("error %d", f.Retval)
}

func (s *sequence) addPod(ctx context.Context, a *podmanager.Attachment) error {
	ev := podmanager.NewAddPod(a)
	if err := s.ctl.PushEvent(ev); err != nil {
		return err
	}
	var err error
	select {
	case err = <-ev.Result():
	case <-ctx.Done():
		return fmt.Errorf("ADD of %s does not end", a.ID)
	}
	s.report("ADD %s: %.200v", a.ID, err)
	if err != nil || a.Seq != 0 {
		return nil
	}
	for _, now := range s.pods.LocalAttachments() {
		if now.ID == a.ID {
			s.live = append(s.live, now)
			return nil
		}
	}
	return fmt.Errorf("ADD of %s has succeeded and is not on record", a.ID)
}

func (s *sequence) deletePod(ctx context.Context, i int) error {
	a := s.live[i]
	s.live = append(s.live[:i:i], s.live[i+1:]...)
	ev := podmanager.NewDeletePod(a)
	if err := s.ctl.PushEvent(ev); err != nil {
		return err
	}
	select {
	case err := <-ev.Result():
		s.report("DEL %s: %.200v", a.ID, err)
	case <-ctx.Done():
		return fmt.Errorf("DEL of %s does not end", a.ID)
	}
	return nil
}

// restart ends the agent and starts another one on the same VPP.
func (s *sequence) restart() error {
	s.report("the agent restarts")
	if err := s.stop(); err != nil {
		return err
	}
	w, err := newWorld(s.dir, s.fake, s.linux, s.useTAP, s.kube)
	if err == nil {
		s.world = w
	}
	return err
}

// finish waits until the node has healed by itself, and compares it with one that is configured from scratch.
func (s *sequence) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := poll.Until(ctx, 2*time.Millisecond, s.settled); err != nil {
		return fmt.Errorf("the node does not heal: %w", err)
	}
	have, err := s.addresses()
	if err != nil {
		return err
	}
	for _, a := range s.live {
		if len(have[a.ID]) != 2 {
			return fmt.Errorf("%s is on record with %v", a.ID, have[a.ID])
		}
		delete(have, a.ID)
	}
	if len(have) > 0 {
		return fmt.Errorf("no attachment has the addresses on record: %v", have)
	}
	if err := s.verified(); err != nil {
		return fmt.Errorf("updates do not add up to a resync: %w", err)
	}
	fresh, err := s.fromScratch(ctx)
	if err != nil {
		return err
	}
	if got := ordered(s.fake.Dump()); got != ordered(fresh) {
		return fmt.Errorf("VPP differs from a new one:\n%s", diff(got, ordered(fresh)))
	}
	return s.quietRestart(ctx)
}

// ordered returns a dump with the backends of NAT's mappings in order: without affinity their order in VPP does not matter.
func ordered(dump string) string {
	lines := strings.Split(dump, "\n")
	for n, line := range lines {
		at := strings.LastIndex(line, `" `)
		if strings.HasPrefix(line, "nat44 mapping ") && strings.Contains(line, " affinity 0 ") && at > 0 {
			backends := strings.Split(line[at+2:], ", ")
			slices.Sort(backends)
			lines[n] = line[:at+2] + strings.Join(backends, ", ")
		}
	}
	return strings.Join(lines, "\n")
}

// fromScratch returns the configuration of a new VPP on which an agent with the same pods starts.
func (s *sequence) fromScratch(ctx context.Context) (string, error) {
	fake := vppfake.New(vppfake.Config{Seed: 1})
	defer fake.Close()
	if err := fake.Listen(filepath.Join(s.dir, "fresh.sock")); err != nil {
		return "", err
	}
	w, err := newWorld(s.dir, fake, &kernel{values: map[string]proto.Message{}}, s.useTAP, s.kube)
	if err != nil {
		return "", err
	}
	err = poll.Until(ctx, 2*time.Millisecond, w.settled)
	dump := fake.Dump()
	return dump, errors.Join(err, w.stop())
}

// quietRestart checks that an agent that starts now finds nothing to do.
func (s *sequence) quietRestart(ctx context.Context) error {
	if err := s.restart(); err != nil {
		return err
	}
	if err := poll.Until(ctx, 2*time.Millisecond, s.settled); err != nil {
		return fmt.Errorf("after a restart: %w", err)
	}
	if n := s.world.vpp.Writes(); n != 0 {
		var ops []string
		for _, rec := range s.sched.History(scheduler.HistoryFilter{}) {
			for _, op := range rec.Executed {
				ops = append(ops, fmt.Sprintf("%s %s", op.Action, op.Key))
			}
		}
		return fmt.Errorf("a restart with nothing changed makes %d requests that change VPP: %s", n, strings.Join(ops, ", "))
	}
	return nil
}

// diff returns the lines that only one of the texts has.
func diff(got, want string) string {
	var b strings.Builder
	only := func(sign, a, b2 string) {
		other := map[string]bool{}
		for line := range strings.Lines(b2) {
			other[line] = true
		}
		for line := range strings.Lines(a) {
			if !other[line] {
				b.WriteString(sign + line)
			}
		}
	}
	only("+ ", got, want)
	only("- ", want, got)
	return b.String()
}
