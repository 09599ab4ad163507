package nat44_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"contiv.dev/vswitch/dataplane/vpp/vpptest"
	"contiv.dev/vswitch/test/testbed"
)

// TestServices: real connections through real VPP on two nodes.
func TestServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, "")
	a, a2, b := w.pod(0, "a"), w.pod(0, "a2"), w.pod(1, "b")
	h0, h1 := w.host(0, testbed.MgmtAddress(0)), w.host(1, testbed.MgmtAddress(1))
	outside, manager := w.outside(), w.manager()
	everywhere := []*server{a, a2, b, h0, h1}
	w.service("web", "10.96.0.10", nil, a, b)
	self := w.service("self", "10.96.0.11", nil, a)
	w.service("np", "10.96.0.12", nodePort(30080), a, b)
	w.service("np-local", "10.96.0.13", func(s *corev1.Service) {
		nodePort(30081)(s)
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}, a)
	w.service("hosts", "10.96.0.14", nil, h0, h1)
	w.service("ext", "10.96.0.15", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"203.0.113.7"} }, a, b)

	w.each("cluster IP", func(network string) {
		for _, from := range everywhere { // a and b reach themselves, too
			w.reaches(from, network, "10.96.0.10:80", a, b)
			w.reaches(from, network, "10.96.0.14:80", h0, h1)
			w.reaches(from, network, "203.0.113.7:80", a, b)
		}
	})
	w.each("node port", func(network string) {
		for _, from := range []*server{outside, a, b, h0} {
			w.reaches(from, network, "192.168.16.1:30080", a, b)
		}
		for _, from := range []*server{outside, a, b, h1} {
			w.reaches(from, network, "192.168.16.2:30080", a, b)
		}
		for _, from := range []*server{a, b} {
			w.reaches(from, network, testbed.MgmtAddress(0)+":30080", a, b)
			w.reaches(from, network, testbed.MgmtAddress(1)+":30080", a, b)
		}
		// At addresses of the host's own.
		w.reaches(h0, network, testbed.MgmtAddress(0)+":30080", a, b)
		w.reaches(manager, network, testbed.MgmtAddress(0)+":30080", a, b)
		w.reaches(outside, network, "192.168.16.1:30081", a)
		w.sees(outside, network, "192.168.16.1:30081", outsideIP)
		w.silent(outside, network, "192.168.16.2:30081")
		w.silent(b, network, "192.168.16.2:30081") // letter C
	})
	w.each("outside", func(network string) {
		for _, from := range []*server{a, b} {
			w.reaches(from, network, outsideIP+":8080", outside)
		}
		w.sees(a, network, outsideIP+":8080", "192.168.16.1")
		w.sees(b, network, outsideIP+":8080", "192.168.16.2")
		w.sees(a, network, b.at(servePort), a.ip.String())
		w.sees(a, network, "10.96.0.11:80", "10.1.1.254")
		w.sees(a2, network, "10.96.0.11:80", a2.ip.String())
	})
	w.endpoints(self)
	w.each("no backends", func(network string) {
		for _, from := range everywhere {
			w.refused(from, network, "10.96.0.11:80")
			w.refused(from, network, "10.96.0.10:81")
		}
	})
}

// TestNoOverlay: the nodes reach each other's pods by the uplink, where nothing is translated; what pods send to the outside is, on
// its way through a pipe.
func TestNoOverlay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, "nodeToNodeTransport: nooverlay\n")
	a, a2, b := w.pod(0, "a"), w.pod(0, "a2"), w.pod(1, "b")
	h0, h1 := w.host(0, testbed.MgmtAddress(0)), w.host(1, testbed.MgmtAddress(1))
	outside := w.outside()
	w.service("web", "10.96.0.10", nodePort(30080), a, b)
	w.service("hosts", "10.96.0.11", nil, h0, h1)
	w.service("np-local", "10.96.0.13", func(s *corev1.Service) {
		nodePort(30081)(s)
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}, a)
	empty := w.service("empty", "10.96.0.12", func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"203.0.113.7"} })
	w.each("services", func(network string) {
		for _, from := range []*server{a, a2, b, h0, h1} {
			w.reaches(from, network, "10.96.0.10:80", a, b)
			w.reaches(from, network, "10.96.0.11:80", h0, h1)
			w.refused(from, network, "10.96.0.12:80")
			w.refused(from, network, "203.0.113.7:80")
		}
		w.reaches(outside, network, "192.168.16.1:30080", a, b)
		w.reaches(outside, network, "192.168.16.2:30080", a, b)
		w.reaches(outside, network, "192.168.16.1:30081", a)
		w.sees(outside, network, "192.168.16.1:30081", outsideIP)
		w.silent(outside, network, "192.168.16.2:30081")
		w.silent(b, network, "192.168.16.2:30081") // letter C
		w.sees(a, network, b.at(servePort), a.ip.String())
		for _, from := range []*server{a, b} {
			w.sees(from, network, h0.at(servePort), from.ip.String())
			w.sees(from, network, h1.at(servePort), from.ip.String())
		}
	})
	w.each("outside", func(network string) {
		w.sees(a, network, outsideIP+":8080", "192.168.16.1")
		w.sees(b, network, outsideIP+":8080", "192.168.16.2")
		w.sees(h0, network, a.at(servePort), "172.30.1.2")
	})
	w.endpoints(empty, b)
	w.each("first backend", func(network string) {
		w.reaches(a, network, "10.96.0.12:80", b)
		w.reaches(a, network, "203.0.113.7:80", b)
	})
}

func nodePort(port int32) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeNodePort
		for i := range s.Spec.Ports {
			s.Spec.Ports[i].NodePort = port
		}
	}
}

// TestNoOverlayWithWorker: another thread than the one that carries out requests sends packets through the pipe.
func TestNoOverlayWithWorker(t *testing.T) {
	w := newWorld(t, 2, "nodeToNodeTransport: nooverlay\n", func(o *vpptest.Options) { o.Workers = 1 })
	a, a2, b := w.pod(0, "a"), w.pod(0, "a2"), w.pod(1, "b")
	outside := w.outside()
	w.service("web", "10.96.0.10", nodePort(30080), a, b)
	w.service("np-local", "10.96.0.13", func(s *corev1.Service) {
		nodePort(30081)(s)
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}, a)
	w.each("outside and services", func(network string) {
		for range 8 {
			w.sees(a, network, outside.at(servePort), "192.168.16.1")
			w.sees(a2, network, outside.at(servePort), "192.168.16.1")
			w.sees(b, network, outside.at(servePort), "192.168.16.2")
			w.sees(a, network, b.at(servePort), a.ip.String())
		}
		for _, from := range []*server{a, a2, b} {
			w.reaches(from, network, "10.96.0.10:80", a, b)
		}
		w.reaches(outside, network, "192.168.16.1:30080", a, b)
		w.reaches(a, network, "192.168.16.1:30081", a)
		w.silent(outside, network, "192.168.16.2:30081")
	})
	for _, from := range []*server{a, b} {
		w.must(w.eventually(func() error { return from.PingOnce(w.ctx, outsideIP, 0) }))
	}
}
