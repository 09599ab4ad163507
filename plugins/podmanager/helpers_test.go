package podmanager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"contiv.dev/vswitch/internal/cniapi"
	"contiv.dev/vswitch/plugins/controller/api"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(agentEnv); dir != "" {
		os.Exit(agentMain(dir))
	}
	goleak.VerifyTestMain(m)
}

// fakeNet replaces ipam, ipnet and the dataplane: it allocates addresses and stores the connected attachments. With the loop's rules for
// RevertOnFailure and Reverse it is called like the real plugins.
type fakeNet struct {
	pm *PodManager // or nil

	mu     sync.Mutex
	wired  map[AttachmentID]*Attachment
	addrs  map[AttachmentID]netip.Prefix
	fail   func(ev api.Event) error
	events []string
}

func newFakeNet() *fakeNet {
	return &fakeNet{wired: map[AttachmentID]*Attachment{}, addrs: map[AttachmentID]netip.Prefix{}}
}

func (n *fakeNet) String() string { return "toynet" }

func (n *fakeNet) HandlesEvent(ev api.Event) bool {
	switch ev.(type) {
	case *AddPod, *DeletePod:
		return true
	}
	return ev.Method().IsResync()
}

// Resync connects the attachments of podmanager.
func (n *fakeNet) Resync(api.Event, api.KubeStateData, int, api.ResyncOperations) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wired, n.addrs = map[AttachmentID]*Attachment{}, map[AttachmentID]netip.Prefix{}
	for _, a := range n.pm.LocalAttachments() {
		n.wired[a.ID] = a
		if len(a.Addresses) > 0 {
			n.addrs[a.ID] = a.Addresses[0]
		}
	}
	return nil
}

func (n *fakeNet) Update(ev api.Event, _ api.UpdateOperations) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, ev.String())
	if n.fail != nil {
		if err := n.fail(ev); err != nil {
			return "", err
		}
	}
	switch ev := ev.(type) {
	case *AddPod:
		return "wire", n.add(ev)
	case *DeletePod:
		delete(n.wired, ev.Attachment.ID)
		delete(n.addrs, ev.Attachment.ID)
	}
	return "", nil
}

func (n *fakeNet) add(ev *AddPod) error {
	a := ev.Attachment
	addr, known := n.addrs[a.ID]
	if !known {
		addr = n.free()
		n.addrs[a.ID] = addr
	}
	if err := n.pm.SetAddresses(a.ID, []netip.Prefix{addr}); err != nil {
		return err
	}
	n.wired[a.ID] = a
	ev.Interfaces = []PodInterface{{Name: "tap"}, {Name: a.ID.IfName, MAC: "02:fe:00:00:00:01", MTU: 1450, Sandbox: a.Netns}}
	ev.IPs = []PodIP{{Address: addr, Gateway: netip.MustParseAddr("10.1.0.1"), Interface: 1}}
	ev.Routes = []PodRoute{{Dst: netip.MustParsePrefix("0.0.0.0/0"), GW: netip.MustParseAddr("10.1.0.1")}}
	return nil
}

func (n *fakeNet) free() netip.Prefix {
	used := slices.Collect(maps.Values(n.addrs))
	for addr := netip.MustParseAddr("10.1.0.2"); ; addr = addr.Next() {
		if p := netip.PrefixFrom(addr, 32); !slices.Contains(used, p) {
			return p
		}
	}
}

func (n *fakeNet) Revert(ev api.Event) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ev, ok := ev.(*AddPod); ok && len(ev.Attachment.Addresses) == 0 {
		delete(n.wired, ev.Attachment.ID)
		delete(n.addrs, ev.Attachment.ID)
	}
	return nil
}

func (n *fakeNet) setFail(fail func(api.Event) error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail = fail
}

func (n *fakeNet) history() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.events)
}

func (n *fakeNet) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.wired)
}

// fakeLoop is a minimal event loop: it waits for gate before each event.
type fakeLoop struct {
	handlers []api.EventHandler
	queue    chan api.Event
	gate     chan struct{} // nil: open
	done     chan struct{}

	mu     sync.Mutex
	closed bool
}

func newFakeLoop() *fakeLoop {
	return &fakeLoop{queue: make(chan api.Event, 10000), done: make(chan struct{})}
}

func (l *fakeLoop) PushEvent(ev api.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return api.ErrClosed
	}
	l.queue <- ev
	return nil
}

func (l *fakeLoop) run() {
	defer close(l.done)
	for ev := range l.queue {
		if l.gate != nil {
			<-l.gate
		}
		ev.Done(l.handle(ev))
	}
}

func (l *fakeLoop) handle(ev api.Event) error {
	if ev.Method().IsResync() {
		for _, h := range l.handlers {
			if err := h.Resync(ev, nil, 1, nil); err != nil {
				return err
			}
		}
		return nil
	}
	up := ev.(api.UpdateEvent)
	order := slices.Clone(l.handlers)
	if up.Direction() == api.Reverse {
		slices.Reverse(order)
	}
	var errs []error
	for i, h := range order {
		_, err := h.Update(ev, nil)
		errs = append(errs, err)
		if err != nil && up.TransactionType() == api.RevertOnFailure {
			for _, h := range slices.Backward(order[:i+1]) {
				errs = append(errs, h.Revert(ev))
			}
			break
		}
	}
	return errors.Join(errs...)
}

func (l *fakeLoop) close() {
	l.mu.Lock()
	wasClosed := l.closed
	l.closed = true
	l.mu.Unlock()
	if !wasClosed {
		close(l.queue)
	}
	<-l.done
}

// rig is an agent with fakes.
type rig struct {
	t     *testing.T
	dir   string
	ns    *fakeNetns
	loop  *fakeLoop
	net   *fakeNet
	pm    *PodManager
	check Checks
}

// ownNetns is the inode of the agent's own network namespace.
const ownNetns = 99

// fakeNetns holds the network namespaces that exist.
type fakeNetns struct {
	mu   sync.Mutex
	ino  map[string]uint64
	boot string
}

func (f *fakeNetns) look(path string) (uint64, netnsState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if strings.HasPrefix(path, "/hidden/") {
		return 0, netnsUnknown
	}
	if ino := f.ino[path]; ino != 0 {
		return ino, netnsSeen
	}
	return 0, netnsGone
}

// make creates the namespace if it does not exist.
func (f *fakeNetns) make(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ino[path] == 0 {
		f.ino[path] = uint64(len(f.ino) + 100)
	}
}

func (f *fakeNetns) set(path string, ino uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ino[path] = ino
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, dir: filepath.Join(t.TempDir(), "pods"), ns: &fakeNetns{ino: map[string]uint64{}, boot: "boot1"}}
	r.start(nil)
	r.resync()
	return r
}

// start starts a new agent with the data in dir.
func (r *rig) start(gate chan struct{}) {
	r.t.Helper()
	r.loop, r.net = newFakeLoop(), newFakeNet()
	r.loop.gate = gate
	pm, err := newPodManager(Config{StoreDir: r.dir}, Deps{EventLoop: r.loop}, system{netns: r.ns.look, ownNetns: ownNetns, bootID: r.ns.boot})
	if err != nil {
		r.t.Fatal(err)
	}
	r.pm, r.net.pm = pm, pm
	loop := r.loop
	loop.handlers = []api.EventHandler{pm, r.net}
	go loop.run()
	r.t.Cleanup(loop.close)
}

func (r *rig) resync() {
	r.t.Helper()
	if err := r.loop.PushEvent(api.NewDBResync()); err != nil {
		r.t.Fatal(err)
	}
	for !r.pm.isResynced() {
		time.Sleep(time.Millisecond)
	}
}

func (r *rig) restart() {
	r.t.Helper()
	r.loop.close()
	r.start(nil)
	r.resync()
}

func addReq(container, pod string) *cniapi.Request {
	return &cniapi.Request{Version: cniapi.Version, Command: cniapi.Add, ContainerID: container, IfName: "eth0",
		Netns: "/run/netns/" + container, Network: cniapi.Network{Name: "contiv"},
		Pod: cniapi.Pod{Namespace: "default", Name: pod}}
}

func (r *rig) do(req *cniapi.Request) (*cniapi.Result, error) {
	return r.doFor(req, 10*time.Second)
}

func (r *rig) doFor(req *cniapi.Request, d time.Duration) (*cniapi.Result, error) {
	if req.Command == cniapi.Add && strings.HasPrefix(req.Netns, "/run/netns/") {
		r.ns.make(req.Netns) // as runtimes do before a request
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), d)
	defer cancel()
	return r.pm.Handle(ctx, r.check, req)
}

func (r *rig) add(container, pod string) *cniapi.Result {
	r.t.Helper()
	res, err := r.do(addReq(container, pod))
	if err != nil {
		r.t.Fatalf("ADD %s: %v", container, err)
	}
	return res
}

func (r *rig) del(container, pod string) {
	r.t.Helper()
	if _, err := r.do(delReq(container, pod)); err != nil {
		r.t.Fatalf("DEL %s: %v", container, err)
	}
}

func delReq(container, pod string) *cniapi.Request {
	req := addReq(container, pod)
	req.Command = cniapi.Del
	return req
}

func wantCode(t *testing.T, err error, code uint, text string) {
	t.Helper()
	var e *cniapi.Error
	if !errors.As(err, &e) || e.Code != code || !strings.Contains(e.Error(), text) {
		t.Errorf("got error %v, want code %d with %q", err, code, text)
	}
}

// consistent checks that memory, files and dataplane match.
func (r *rig) consistent() {
	r.t.Helper()
	files, err := os.ReadDir(r.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	var onDisk []string
	for _, f := range files {
		rec, err := r.pm.store.load(filepath.Join(r.dir, f.Name()))
		if err != nil {
			r.t.Errorf("%s: %v", f.Name(), err)
			continue
		}
		onDisk = append(onDisk, describe(rec.attachment()))
	}
	var inMemory, inNet []string
	for _, a := range r.pm.LocalAttachments() {
		inMemory = append(inMemory, describe(a))
	}
	r.net.mu.Lock()
	defer r.net.mu.Unlock()
	seen := map[netip.Prefix]bool{}
	for id, a := range r.net.wired {
		wired := *a
		wired.Addresses = []netip.Prefix{r.net.addrs[id]}
		inNet = append(inNet, describe(&wired))
		if seen[r.net.addrs[id]] {
			r.t.Errorf("%s is used twice", r.net.addrs[id])
		}
		seen[r.net.addrs[id]] = true
	}
	if len(r.net.addrs) != len(r.net.wired) {
		r.t.Errorf("%d addresses for %d pods", len(r.net.addrs), len(r.net.wired))
	}
	slices.Sort(onDisk)
	slices.Sort(inMemory)
	slices.Sort(inNet)
	if !slices.Equal(onDisk, inMemory) || !slices.Equal(inMemory, inNet) {
		r.t.Errorf("disk:\n%s\nmemory:\n%s\ndataplane:\n%s", strings.Join(onDisk, "\n"), strings.Join(inMemory, "\n"), strings.Join(inNet, "\n"))
	}
}

func describe(a *Attachment) string {
	return fmt.Sprintf("%s %s %s %d %v %d", a.ID, a.Pod, a.Netns, a.NetnsInode, a.Addresses, a.Seq)
}
