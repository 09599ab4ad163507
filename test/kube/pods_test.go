package kube

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"contiv.dev/vswitch/test/testbed/netns"
)

const (
	agnhost   = "registry.k8s.io/e2e-test-images/agnhost:2.63.0"
	pause     = "registry.k8s.io/pause:3.10.1"
	webPort   = 8080
	allPodsUp = 90 * time.Second
)

// object is a JSON object.
type object = map[string]any

// webPod returns a pod that answers with its name on webPort, by HTTP and UDP; the kubelet probes it.
func webPod(name, app, node string) object {
	return object{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": object{"name": name, "labels": object{"app": app}},
		"spec":     webSpec(node),
	}
}

func webSpec(node string) object {
	spec := object{
		"terminationGracePeriodSeconds": 1,
		"containers": []any{object{
			"name": "web", "image": agnhost, "imagePullPolicy": "IfNotPresent",
			"args":           []any{"netexec", fmt.Sprintf("--http-port=%d", webPort), fmt.Sprintf("--udp-port=%d", webPort)},
			"readinessProbe": object{"periodSeconds": 1, "httpGet": object{"path": "/hostname", "port": webPort}},
		}},
	}
	if node != "" {
		spec["nodeSelector"] = object{"kubernetes.io/hostname": node}
	}
	return spec
}

// client is a pod whose network namespace a test can use.
type client struct {
	pod
	ns *netns.Namespace
}

func (c *client) v4() string { return family(c.ips(), false) }
func (c *client) v6() string { return family(c.ips(), true) }

// webPods makes pods of an application, perNode on every node, and waits until they are ready; they are deleted after the
// test.
func (w *world) webPods(app string, perNode int) []*client {
	w.t.Helper()
	for i := range perNode {
		for _, n := range w.nodes {
			w.create(webPod(fmt.Sprintf("%s-%s-%d", app, n.name, i), app, n.name))
		}
	}
	w.t.Cleanup(func() { w.deletePods(app) })
	return w.readyPods(app, perNode*len(w.nodes))
}

func (w *world) create(pod object) {
	w.t.Helper()
	w.must(w.do(w.ctx, http.MethodPost, podsPath, pod, nil))
}

// readyPods waits until an application has exactly count ready pods and no others.
func (w *world) readyPods(app string, count int) []*client {
	w.t.Helper()
	var pods []pod
	w.within(allPodsUp, fmt.Sprintf("%d pods of %s are ready", count, app), func() (err error) {
		if pods, err = w.pods(w.ctx, app); err != nil {
			return err
		}
		return allReady(pods, count)
	})
	var clients []*client
	for _, p := range pods {
		ns, err := w.node(p.Spec.NodeName).podNamespace(p.ips()[0])
		w.must(err)
		clients = append(clients, &client{p, ns})
	}
	slices.SortFunc(clients, func(a, b *client) int {
		if a.Metadata.Name < b.Metadata.Name {
			return -1
		}
		return 1
	})
	return clients
}

func allReady(pods []pod, count int) error {
	ready := 0
	for _, p := range pods {
		if p.is("Ready") && p.Metadata.DeletionTimestamp == nil {
			ready++
		}
	}
	if ready != count || len(pods) != count {
		return fmt.Errorf("%d of %d pods are ready", ready, len(pods))
	}
	return nil
}

func (w *world) node(name string) *node {
	w.t.Helper()
	for _, n := range w.nodes {
		if n.name == name {
			return n
		}
	}
	w.t.Fatalf("there is no node %q", name)
	return nil
}

// deletePods deletes an application's pods and waits until they no longer exist.
func (w *world) deletePods(app string) {
	w.t.Helper()
	path := podsPath + "?labelSelector=app%3D" + app + "&gracePeriodSeconds=1"
	w.must(w.do(w.ctx, http.MethodDelete, path, object{"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 1}, nil))
	w.within(2*time.Minute, "the pods of "+app+" are gone", func() error {
		pods, err := w.pods(w.ctx, app)
		if err == nil && len(pods) > 0 {
			err = fmt.Errorf("%d are there", len(pods))
		}
		return err
	})
}

// each runs f for all i at once and returns the errors.
func each(n int, f func(i int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Add(1)
		//lint:allow go: waited for below
		go func() {
			defer wg.Done()
			errs[i] = f(i)
		}()
	}
	wg.Wait()
	return errors.Join(errs...)
}

// unlike returns two clients of a list that are on different nodes.
func (w *world) unlike(clients []*client) (a, b *client) {
	w.t.Helper()
	for _, c := range clients {
		if c.Spec.NodeName != clients[0].Spec.NodeName {
			return clients[0], c
		}
	}
	w.t.Fatal("all pods are on one node")
	return nil, nil
}
