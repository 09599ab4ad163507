package links

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"contiv.dev/vswitch/dataplane/nb/linux/l3"
	"contiv.dev/vswitch/dataplane/scheduler"
	"contiv.dev/vswitch/internal/nsdo"
)

func TestRouteWithoutRouteToItsGateway(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	pod, host := w.pair(ns, "10.1.1.2/32", "fd00:1::2/128")
	values := []proto.Message{
		pod, host, route(pod, "0.0.0.0/0", "10.1.1.1", 0), route(pod, "::/0", "fd00:9::1", 0),
		route(pod, "10.8.0.0/16", "", 50), route(pod, "fd00:8::/64", "", 50),
	}
	w.put(values...)
	w.shows(ns, "route", "default via 10.1.1.1 dev eth0 proto 201 onlink", "metric 50")
	w.quiet(values...)
	w.restart()
	w.quiet(values...)

	moved := proto.Clone(values[2]).(*linux_l3.Route)
	moved.GwAddr = "10.1.1.254"
	metric := proto.Clone(values[4]).(*linux_l3.Route)
	metric.Metric = 60
	values[2], values[4] = moved, metric
	w.put(moved, metric)
	if out := w.ip(ns, "route"); strings.Count(out, "default") != 1 || strings.Contains(out, "metric 50") {
		t.Errorf("the old routes are left:\n%s", out)
	}
	w.quiet(values...)
	w.remove(values...)
	w.quiet()
}

func TestForeignRouteStays(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	pod, host := w.pair(ns, "10.1.1.2/32")
	w.ip(ns, "link", "add", "br0", "type", "bridge")
	w.ip(ns, "link", "set", "br0", "up")
	w.ip(ns, "route", "add", "10.9.0.0/16", "dev", "br0")
	r := route(pod, "10.9.0.0/16", "", 0)
	w.put(pod, host)
	if f := w.putFails(r).Failed[0]; !errors.Is(f.Err, errForeign) || retriable(f.Err) {
		t.Errorf("%v, want errForeign", f)
	}
	w.shows(ns, "route", "10.9.0.0/16 dev br0")
	other := route(pod, "10.9.0.0/16", "", 10)
	w.remove(r)
	w.put(other)
	w.quiet(pod, host, other)
}

func TestFlushLeavesNoHandles(t *testing.T) {
	w := newWorld(t)
	ns := w.netns("pod")
	values := w.podValues(ns)
	count := func() int {
		fds, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(fds)
	}
	w.put(values...)
	w.remove(values...)
	before := count()
	w.put(values...)
	w.quiet(values...)
	w.remove(values...)
	if after := count(); after != before || len(w.b.open) != 1 {
		t.Errorf("%d open files, were %d; %d namespaces held, want the agent's", after, before, len(w.b.open))
	}
}

func TestFlushAfterItsDeadline(t *testing.T) {
	b := NewBackend(Config{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	calls := 0
	done := func(err error) {
		calls++
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want context.Canceled", err)
		}
	}
	b.upDescriptor().Create(scheduler.NewOp(done), "", &linkUp{"a"})
	b.routeDescriptor().Dump(scheduler.NewDumpOp(ctx, nil, done), func(string, *linux_l3.Route) { t.Error("emitted") })
	b.Flush(ctx)
	if calls != 2 {
		t.Errorf("Done was called %d times, want 2", calls)
	}
}

func TestWhatIsNotANamespace(t *testing.T) {
	b := NewBackend(Config{})
	defer b.Close()
	file := filepath.Join(t.TempDir(), "unmounted")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fifo := file + "-fifo" // no process will ever open its other end
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, file + "/below", file + "-absent", "/proc/999999999/ns/net", fifo, "/dev/null"} {
		if _, err := b.enter(path); !errors.Is(err, nsdo.ErrGone) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want nsdo.ErrGone", path, err)
		}
	}
}
