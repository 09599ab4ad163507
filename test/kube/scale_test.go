package kube

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// testScale adds a hundred pods, each with its own addresses and reachable, and deletes them without leaving anything behind.
func testScale(w *world) {
	before := make([]string, len(w.nodes))
	for i, n := range w.nodes {
		var err error
		before[i], err = w.leftovers(n)
		w.must(err)
	}
	w.apply(deployment("crowd", 0))
	w.t.Cleanup(func() { w.kubectl("delete", "deployment", "crowd", "--ignore-not-found") })
	start := time.Now()
	w.kubectl("scale", "deployment", "crowd", "--replicas=100")
	var pods []pod
	w.within(3*time.Minute, "100 pods are ready", func() (err error) {
		if pods, err = w.pods(w.ctx, "crowd"); err != nil {
			return err
		}
		return allReady(pods, 100)
	})
	w.t.Logf("100 pods are ready %s after `kubectl scale`", since(start))
	owner := map[string]string{}
	for _, p := range pods {
		for _, ip := range p.ips() {
			if owner[ip] != "" {
				w.t.Errorf("%s and %s both have %s", p.Metadata.Name, owner[ip], ip)
			}
			owner[ip] = p.Metadata.Name
		}
	}
	w.must(each(len(pods), func(i int) error {
		for _, ip := range pods[i].ips() {
			from := w.nodes[i%len(w.nodes)]
			if _, err := queryFrom(from.host, hostPort(ip, webPort), "/hostname"); err != nil {
				return fmt.Errorf("%s to %s: %w", from.name, pods[i].Metadata.Name, err)
			}
		}
		return nil
	}))
	start = time.Now()
	w.kubectl("scale", "deployment", "crowd", "--replicas=0")
	w.within(3*time.Minute, "no pod is left", func() error { return w.none("crowd") })
	w.t.Logf("and gone after %s", since(start))
	for i, n := range w.nodes {
		w.within(20*time.Second, n.name+" is as before", func() error {
			after, err := w.leftovers(n)
			if err == nil && after != before[i] {
				err = fmt.Errorf("it has\n%s\ninstead of\n%s", after, before[i])
			}
			return err
		})
	}
}

func (w *world) none(app string) error {
	pods, err := w.pods(w.ctx, app)
	if err == nil && len(pods) > 0 {
		err = fmt.Errorf("%d are there", len(pods))
	}
	return err
}

// leftovers returns the objects that pods have left behind on a node: addresses, links, namespaces, values of the scheduler.
func (w *world) leftovers(n *node) (string, error) {
	out, err := n.sh(w.ctx, "ip -o link | wc -l; ip netns | wc -l; ip route | wc -l; ip -6 route | wc -l; "+
		"nft list ruleset 2>/dev/null | grep -v counter | wc -l")
	if err != nil || w.setup.reference() {
		return strings.Join(strings.Fields(out), " "), err
	}
	var ipam struct{ Allocations []json.RawMessage }
	body, err := n.rest(w.ctx, "/contiv/v1/ipam/allocations")
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal([]byte(body), &ipam); err != nil {
		return "", err
	}
	metrics, err := n.rest(w.ctx, "/metrics")
	if err != nil {
		return "", err
	}
	values := ""
	for line := range strings.Lines(metrics) {
		if strings.HasPrefix(line, "contiv_scheduler_values") {
			values += " " + strings.TrimSpace(line)
		}
	}
	return fmt.Sprintf("%s, %d addresses,%s", strings.Join(strings.Fields(out), " "), len(ipam.Allocations), values), nil
}

// deployment returns a deployment of web pods; after the request to terminate they answer for a while, so that load balancers
// can update.
func deployment(app string, replicas int) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: %[2]d
  strategy: {rollingUpdate: {maxSurge: 2, maxUnavailable: 0}}
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 10
      containers:
      - name: web
        image: %[3]s
        imagePullPolicy: IfNotPresent
        args: [netexec, --http-port=%[4]d, --udp-port=%[4]d, --delay-shutdown=3]
        readinessProbe: {periodSeconds: 1, httpGet: {path: /hostname, port: %[4]d}}
`, app, replicas, agnhost, webPort)
}
