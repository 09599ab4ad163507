package services

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// scenario is a service, its endpoints and the expected outcome of packets to it.
type scenario struct {
	name      string
	change    func(s *corev1.Service, number int)
	endpoints []string
	expect    []string
	// instead describes, with the reason, how a dataplane deviates from kube-proxy; by mode ("vpp"), or mode and family
	// ("vpp/6").
	instead map[string]deviation
}

// deviation is a documented deviation.
type deviation struct {
	why    string
	expect []string
}

// families are the names of IPv4 and IPv6.
var families = [2]string{"4", "6"}

// families returns the families that the mode serves: VPP without our plugin has IPv4 only.
func (m mode) families() []string {
	if m.isVPP() && !m.hasPlugin() {
		return families[:1]
	}
	return families[:]
}

// TestServices runs every case on every dataplane in all families that it serves.
func TestServices(t *testing.T) {
	each(t, func(t *testing.T, m mode) {
		w := newWorld(t, m)
		all := scenarios()
		services := w.putAll(all)
		t.Run("case", func(t *testing.T) {
			for i, sc := range all {
				for f, family := range m.families() {
					t.Run(sc.name+"/"+family, func(t *testing.T) {
						t.Parallel()
						w.check(t, services[i], sc, f)
					})
				}
			}
			if len(m.families()) == 1 {
				t.Run("IPv6 is not served", func(t *testing.T) {
					t.Parallel()
					w.check(t, services[0], scenario{expect: []string{"p1,p2,h1 any cluster -> rejected"}}, 1)
				})
			}
		})
	}, linuxIptables)
}

// putAll puts the services of scenarios and waits until they are served.
func (w *world) putAll(all []scenario) []*corev1.Service {
	w.t.Helper()
	services := make([]*corev1.Service, len(all))
	for i, sc := range all {
		services[i] = w.service(fmt.Sprintf("s%d", i), i+1, func(s *corev1.Service) {
			if sc.change != nil {
				sc.change(s, i+1)
			}
		})
		w.put(services[i], sc.endpoints...)
	}
	w.await("barrier")
	return services
}

// expected returns the expected outcomes of a scenario in one family, and the reason if they deviate from kube-proxy's.
func (w *world) expected(sc scenario, family int) (expect []string, why string) {
	expect = sc.expect
	mode := string(w.mode)
	if w.mode == fake {
		mode = string(vpp) // the fake has all deviations of VPP
	}
	for _, where := range []string{mode, mode + "/" + families[family]} {
		if d, ok := sc.instead[where]; ok {
			expect, why = d.expect, d.why
		}
	}
	return expect, why
}

// check checks a scenario in one family.
func (w *world) check(t *testing.T, svc *corev1.Service, sc scenario, family int) {
	expect, why := w.expected(sc, family)
	if why != "" {
		t.Logf("otherwise than kube-proxy: %s", why)
	}
	for _, text := range expect {
		e, err := parseExpectation(text)
		if err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(40 * time.Second) // VPP limits the rate of its ICMP errors
		if w.mode.isFake() {
			deadline = time.Now() // the fake has no rate limit
		}
		for err = w.meets(svc, e, family); err != nil && time.Now().Before(deadline); err = w.meets(svc, e, family) {
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// waitEverywhere waits until expectations are met, for tests that change something and check the effect.
func (w *world) waitEverywhere(svc *corev1.Service, texts ...string) {
	w.t.Helper()
	for _, text := range texts {
		e, err := parseExpectation(text)
		w.must(err)
		for f := range w.mode.families() {
			w.within(time.Minute, text, func() error { return w.meets(svc, e, f) })
		}
	}
}
