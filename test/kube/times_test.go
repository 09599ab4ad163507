package kube

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// times are the durations for a number of pods that were created at the same time.
type times struct {
	network, running []time.Duration // since each pod was scheduled; sorted
	all              time.Duration   // from the first request until the last pod is running
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)-1))]
}

// testTimes measures how long pods take from being scheduled to their network (the kubelet's condition
// PodReadyToStartContainers) and until they run. The kubelet, containerd and the API server take most of the time; so contiv and
// the reference plugin are measured in turns, on the same nodes.
func testTimes(w *world) {
	for _, round := range []struct{ count, times int }{{1, 5}, {20, 2}, {100, 1}} {
		var got [2]times // contiv and bridge
		for range round.times {
			for i, bridge := range []bool{false, true} {
				w.usePlugin(bridge)
				got[i].add(w.measure(fmt.Sprintf("times%d", round.count), round.count))
			}
		}
		w.t.Logf("%d pods at once, contiv: %s", round.count, got[0])
		w.t.Logf("%d pods at once, bridge: %s", round.count, got[1])
		ratio := func(q func(times) time.Duration) float64 { return float64(q(got[0])) / float64(q(got[1])) }
		w.t.Logf("%d pods at once, contiv by bridge: network ×%.2f, running ×%.2f, all ×%.2f", round.count,
			ratio(func(t times) time.Duration { return quantile(t.network, 0.5) }),
			ratio(func(t times) time.Duration { return quantile(t.running, 0.5) }), ratio(func(t times) time.Duration { return t.all }))
	}
	w.usePlugin(false)
}

// add merges another round into the previous ones: of the time until all run, the minimum counts.
func (t *times) add(more times) {
	t.network = append(t.network, more.network...)
	t.running = append(t.running, more.running...)
	slices.Sort(t.network)
	slices.Sort(t.running)
	if t.all == 0 || more.all < t.all {
		t.all = more.all
	}
}

// String returns the times in milliseconds.
func (t times) String() string {
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	return fmt.Sprintf("network p50 %d ms, max %d ms; running p50 %d ms, max %d ms; all %d ms",
		ms(quantile(t.network, 0.5)), ms(quantile(t.network, 1)), ms(quantile(t.running, 0.5)), ms(quantile(t.running, 1)), ms(t.all))
}

// usePlugin installs the configuration of the reference plugin before ours, or removes it, and waits until containerd uses it.
// There must be no pods, because pods must be deleted by the plugin that has added them.
func (w *world) usePlugin(bridge bool) {
	w.t.Helper()
	want := netip.MustParsePrefix("10.244.0.0/16")
	if bridge {
		want = netip.MustParsePrefix("10.245.0.0/16")
	}
	for _, n := range w.nodes {
		file := filepath.Join(n.dir, "cni-net.d", "00-bridge.conflist")
		if !bridge {
			if err := os.Remove(file); err != nil && !os.IsNotExist(err) {
				w.t.Fatal(err)
			}
			continue
		}
		w.must(os.WriteFile(file+".tmp", []byte(bridgeConflist(n.i)), 0o644))
		w.must(os.Rename(file+".tmp", file))
	}
	w.within(30*time.Second, "pods by the other plugin", func() error {
		for i, n := range w.nodes {
			p := pausePod(fmt.Sprintf("which-%d", i), "which")
			p["spec"].(object)["nodeName"] = n.name
			w.create(p)
		}
		var wrong error
		w.within(30*time.Second, "they run", func() error {
			pods, err := w.pods(w.ctx, "which")
			if err != nil {
				return err
			}
			wrong = nil
			for _, p := range pods {
				if p.Status.Phase != "Running" {
					return fmt.Errorf("%s is %s", p.Metadata.Name, p.Status.Phase)
				}
				if ip := family(p.ips(), false); !want.Contains(netip.MustParseAddr(ip)) {
					wrong = fmt.Errorf("%s has %s", p.Metadata.Name, ip)
				}
			}
			return nil
		})
		w.deletePods("which")
		return wrong
	})
}

func bridgeConflist(node int) string {
	return fmt.Sprintf(`{"cniVersion": "1.1.0", "name": "podnet", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipam": {"type": "host-local",
   "ranges": [[{"subnet": "10.245.%[1]d.0/24"}], [{"subnet": "fd00:245:0:%[1]d::/64"}]],
   "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}`, node)
}

// measure creates pods and deletes them.
func (w *world) measure(app string, count int) times {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.ctx, 3*time.Minute)
	defer cancel()
	scheduled, network, running := map[string]time.Time{}, map[string]time.Time{}, map[string]time.Time{}
	first := func(m map[string]time.Time, p pod, at time.Time) {
		if _, ok := m[p.Metadata.Name]; !ok {
			m[p.Metadata.Name] = at
		}
	}
	seen := make(chan error, 1)
	//lint:allow go: ends with its context, or when all pods run; waited for below
	go func() {
		seen <- w.watchPods(ctx, app, func(_ string, p pod, at time.Time) bool {
			if p.Spec.NodeName != "" {
				first(scheduled, p, at)
			}
			if p.is("PodReadyToStartContainers") {
				first(network, p, at)
			}
			if p.Status.Phase == "Running" {
				first(running, p, at)
				first(network, p, at)
			}
			return len(running) == count
		})
	}()
	start := time.Now()
	w.must(each(count, func(i int) error {
		return w.do(ctx, http.MethodPost, podsPath, pausePod(fmt.Sprintf("%s-%d", app, i), app), nil)
	}))
	w.must(<-seen)
	got := times{all: time.Since(start)}
	for name, at := range scheduled {
		got.network = append(got.network, network[name].Sub(at))
		got.running = append(got.running, running[name].Sub(at))
	}
	slices.Sort(got.network)
	slices.Sort(got.running)
	w.deletePods(app)
	return got
}

// pausePod returns a pod that does nothing.
func pausePod(name, app string) object {
	return object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{"name": name, "labels": object{"app": app}},
		"spec": object{
			"terminationGracePeriodSeconds": 1,
			"containers":                    []any{object{"name": "pause", "image": pause, "imagePullPolicy": "IfNotPresent"}},
		},
	}
}
