package links

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"contiv.dev/vswitch/dataplane/netlink"
)

// Config configures a Backend. The zero value is correct for an agent in the host's namespaces.
type Config struct {
	Log *slog.Logger
	// ProcDir is the path of the host's /proc; used for namespaces given by PID. Default /proc.
	ProcDir string
	// NetnsDir is the directory of named namespaces; used for namespaces given by NSID. Default /var/run/netns.
	NetnsDir string
	// Timeout bounds one exchange with the kernel. Default 5 s.
	Timeout time.Duration
}

// VethPool provides VETH pairs that are ready in the agent's namespace: the host end is up and already attached to VPP. The caller owns both
// devices afterwards; the pod end is moved and renamed, the host end keeps its name.
type VethPool interface {
	TakeVeth() (podEnd, hostEnd string, ok bool)
}

// Backend carries out the operations of the Linux descriptors (it is a scheduler.Backend) and stores the locations of our interfaces. Its exported
// look-ups may be called from any goroutine; all other methods run on the scheduler's.
type Backend struct {
	log      *slog.Logger
	procDir  string
	netnsDir string
	timeout  time.Duration

	tapDevice func(vppIfName string) (hostDev string, inPlace, ok bool)
	pool      VethPool
	janitor   *Janitor

	open  map[string]*nsHandle // by path; all except the agent's own are closed at the end of Flush
	rbuf  []byte               // shared by the sockets
	tasks []*task
	dumps []*dumpTask
	heal  map[string]bool // interfaces that lost an IPv4 address or their MAC in this flush
	aside []asideTap      // devices that were put aside last

	mu        sync.RWMutex
	links     map[string]*device // guarded by mu; by logical name
	taps      map[string]string  // guarded by mu; logical name of the Linux end by that of the VPP end
	attaching map[string]bool    // guarded by mu; Linux ends of TAPs, by logical name, to which VPP is about to attach
}

// NewBackend returns a backend that is not registered with a scheduler yet; its look-ups find nothing before that.
func NewBackend(cfg Config) *Backend {
	b := &Backend{
		log:      cfg.Log,
		procDir:  cfg.ProcDir,
		netnsDir: cfg.NetnsDir,
		timeout:  cfg.Timeout,
		open:     map[string]*nsHandle{},
		rbuf:     make([]byte, netlink.ReceiveBuffer),
		heal:     map[string]bool{},
		links:    map[string]*device{},
		taps:     map[string]string{},

		attaching: map[string]bool{},
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.procDir == "" {
		b.procDir = "/proc"
	}
	if b.netnsDir == "" {
		b.netnsDir = "/var/run/netns"
	}
	if b.timeout <= 0 {
		b.timeout = 5 * time.Second
	}
	return b
}

// Close releases the handles of the backend.
func (b *Backend) Close() {
	b.leaveAll()
	if h := b.open[""]; h != nil {
		h.close()
		delete(b.open, "")
	}
}

// class orders the tasks of one flush.
type class int

const (
	deletes class = iota
	creates
	dependentCreates // depend on other creates of the flush
)

// task is one queued operation. An end of a VETH pair has veth instead of run, so that both ends can be processed together.
type task struct {
	class class
	run   func() error
	veth  *vethEnd
	done  func(err error)
}

// endKey is the key of the task of one end of a VETH pair.
type endKey struct {
	class class
	name  string
}

func (b *Backend) queue(c class, done func(error), run func() error) {
	b.tasks = append(b.tasks, &task{class: c, run: run, done: done})
}

// dumpTask is one queued dump.
type dumpTask struct {
	links bool // dumps of links run first: they determine where our links are
	run   func(s *snapshot) error
	done  func(err error)
}

// Flush carries out the queued tasks and closes the namespaces that it entered.
func (b *Backend) Flush(ctx context.Context) {
	defer b.leaveAll()
	for len(b.tasks) > 0 || len(b.dumps) > 0 {
		tasks := b.tasks
		b.tasks = nil
		b.runTasks(ctx, tasks)
		dumps := b.dumps
		b.dumps = nil
		b.runDumps(ctx, dumps)
	}
	b.healAttached()
}

func (b *Backend) runTasks(ctx context.Context, tasks []*task) {
	slices.SortStableFunc(tasks, func(x, y *task) int { return int(x.class) - int(y.class) })
	ends := map[endKey]*task{}
	for _, t := range tasks {
		if t.veth != nil {
			ends[endKey{t.class, t.veth.name}] = t
		}
	}
	if ctx.Err() == nil {
		b.removePairs(tasks, ends)
	}
	results := make([]error, len(tasks))
	position := make(map[*task]int, len(tasks))
	for i, t := range tasks {
		position[t] = i
	}
	finished := make([]bool, len(tasks))
	for i, t := range tasks {
		if finished[i] {
			continue
		}
		finished[i] = true
		if err := ctx.Err(); err != nil {
			results[i] = fmt.Errorf("not started: %w", err)
			continue
		}
		if t.veth == nil {
			results[i] = t.run()
			continue
		}
		peer := ends[endKey{t.class, t.veth.peer}]
		if peer == nil || peer.veth.peer != t.veth.name {
			results[i] = b.runVeth(t.class, t.veth, nil)
			continue
		}
		err := b.runVeth(t.class, t.veth, peer.veth)
		results[i], results[position[peer]] = err, err
		finished[position[peer]] = true
	}
	b.healAll()
	for i, t := range tasks {
		t.done(results[i])
	}
}

func (b *Backend) runDumps(ctx context.Context, dumps []*dumpTask) {
	if len(dumps) == 0 {
		return
	}
	slices.SortStableFunc(dumps, func(x, y *dumpTask) int {
		if x.links == y.links {
			return 0
		}
		if x.links {
			return -1
		}
		return 1
	})
	s := newSnapshot(b)
	for _, d := range dumps {
		if err := ctx.Err(); err != nil {
			d.done(fmt.Errorf("not started: %w", err))
			continue
		}
		d.done(d.run(s))
	}
}
