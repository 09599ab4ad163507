package windataplane

import (
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/dataplane/driver/epstate"
	"contiv.dev/vswitch/dataplane/drivertest"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/dataplane/windows/hcn"
	"contiv.dev/vswitch/dataplane/windows/hns"
	"contiv.dev/vswitch/dataplane/windows/hnsmem"
	"contiv.dev/vswitch/internal/health"
)

type proof[C any] = drivertest.Proof[C]

// synced starts a bench's driver and waits for the first apply. It returns false if there is none.
func synced(t *testing.T, b *bench, msgs ...any) bool {
	t.Helper()
	return syncedWithin(t, b, 20*time.Second, msgs...)
}

// syncedWithin is like synced with another time limit.
func syncedWithin(t *testing.T, b *bench, limit time.Duration, msgs ...any) bool {
	t.Helper()
	r := b.start()
	r.send(append(msgs, &proto.InSync{})...)
	done := make(chan error, 1)
	if err := b.d.SendMessage(driver.Flush{Done: done}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		return err == nil
	case <-time.After(limit):
		return false
	}
}

// soon reports whether a condition becomes true within a second.
func soon(is func() bool) bool {
	for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return false
}

// TestEachConfigFieldHasAnEffect is derived from the type: a new field without a proof fails the test.
func TestEachConfigFieldHasAnEffect(t *testing.T) {
	proofs := rulesProofs()
	maps.Copy(proofs, overlayProofs())
	maps.Copy(proofs, loopProofs())
	drivertest.ProveFields(t, proofs)
}

// rulesProofs returns the proofs for the fields that affect rules.
func rulesProofs() map[string]proof[Config] {
	return map[string]proof[Config]{
		"IPv6Enabled": {Set: func(c *Config) { c.IPv6Enabled = true }, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c)
			b.must(openProfile(), policy("p", &proto.Rule{Action: "allow", SrcNet: []string{"2001:db8::/32"}}),
				endpoint("a", 1, withTiers(ingress("p"))))
			return b.allowed("a", hns.In, packet("2001:db8::1", "fd00:65::1", 80))
		}},
		"MaxIPSetSize": {Set: func(c *Config) { c.MaxIPSetSize = 1 }, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c)
			b.must(openProfile(), ipSet("s", "198.51.100.1", "198.51.100.2"), policy("p", fromSet("allow", "s")),
				endpoint("a", 1, withTiers(ingress("p"))))
			return !b.allowed("a", hns.In, packet("198.51.100.1", "10.65.0.1", 80)) && b.status[epstate.WorkloadIDOf(wlID("a"))] == "error"
		}},
		"Networks": {Set: func(c *Config) { c.Networks = regexp.MustCompile("^other$") }, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c) // its network is contiv
			return errors.Is(b.step(openProfile(), endpoint("a", 1)), ErrorUnknownEndpoint)
		}},
		"NodeExempt": {Set: func(c *Config) { c.NodeExempt = true }, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c)
			b.must(openProfile(), policy("p"), endpoint("a", 1, withTiers(egress("default", "p"))))
			return b.allowed("a", hns.Out, packet("192.0.2.1", "10.65.0.1", 80)) &&
				!b.allowed("a", hns.Out, packet("192.0.2.2", "10.65.0.1", 80))
		}},
		"TiersForNode": {Set: func(c *Config) { c.TiersForNode, c.NodeExempt = []string{"admin"}, true }, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c)
			b.must(openProfile(), policy("p"), &proto.ActivePolicyUpdate{Id: &proto.PolicyID{Tier: "admin", Name: "a"},
				Policy: &proto.Policy{OutboundRules: []*proto.Rule{tcpPort("deny", 0), {Action: "pass"}}}},
				endpoint("a", 1, withTiers(egress("admin", "a"), egress("default", "p"))))
			denied := hnsmem.Packet{Protocol: 6, Local: addr("10.65.0.1"), Remote: addr("192.0.2.1"), LocalPort: 40000}
			return !b.allowed("a", hns.Out, denied) && b.allowed("a", hns.Out, packet("192.0.2.1", "10.65.0.1", 80))
		}},
	}
}

// overlayProofs returns the proofs for the fields about VXLAN.
func overlayProofs() map[string]proof[Config] {
	return map[string]proof[Config]{
		"Hostname": {Set: func(c *Config) { c.Hostname, c.VXLANEnabled = "node7", true }, Has: func(t *testing.T, c Config) bool {
			host := newHost(t, hcn.Overlay)
			d, err := New(host.V1(), c, Options{HCN: host.V2()})
			if err != nil {
				t.Fatal(err)
			}
			b := &bench{t: t, d: d, host: host, pods: map[string]string{}, status: map[any]string{}}
			d.statuses.queue = b.note
			b.must(vtep("node7", "192.0.2.7"), remote("10.66.7.0/26", "node7"))
			return len(b.subnets()) == 0 // a node has no tunnel to itself
		}},
		"VXLANEnabled": {Set: func(c *Config) { c.VXLANEnabled = true }, Has: func(t *testing.T, c Config) bool {
			b := newBenchOn(t, c, newHost(t, hcn.Overlay))
			b.must(vtep("node2", "192.0.2.2"), remote("10.66.1.0/26", "node2"))
			return len(b.subnets()) == 1
		}},
		"VXLANID": {Set: func(c *Config) { c.VXLANID, c.VXLANEnabled = 5000, true }, Has: func(t *testing.T, c Config) bool {
			b := newBenchOn(t, c, newHost(t, hcn.Overlay)) // its VNI is 4096
			return errors.Is(b.step(vtep("node2", "192.0.2.2"), remote("10.66.1.0/26", "node2")), ErrUpdatesFailed)
		}},
		"VXLANPort": {Set: func(c *Config) { c.VXLANPort, c.VXLANEnabled = 8472, true }, Has: func(t *testing.T, c Config) bool {
			b := newBenchOn(t, c, newHost(t, hcn.Overlay)) // its port is 4789
			return errors.Is(b.step(vtep("node2", "192.0.2.2"), remote("10.66.1.0/26", "node2")), ErrUpdatesFailed)
		}},
	}
}

// loopProofs returns the proofs for the fields about the loop.
func loopProofs() map[string]proof[Config] {
	return map[string]proof[Config]{
		"HealthAggregator": {Set: func(c *Config) { c.HealthAggregator = health.NewHealthAggregator() }, Has: func(t *testing.T, c Config) bool {
			if !synced(t, quickBench(t, c, newHost(t, hcn.L2Bridge))) || c.HealthAggregator == nil {
				return false
			}
			s := c.HealthAggregator.Summary()
			return s.Ready && s.Live && strings.Contains(s.Detail, driverName)
		}},
		"RefreshInterval": {Set: func(c *Config) { c.RefreshInterval = 20 * time.Millisecond }, Has: func(t *testing.T, c Config) bool {
			b := quickBench(t, c, newHost(t, hcn.L2Bridge))
			synced(t, b, openProfile(), endpoint("a", 1))
			b.host.SetACLs(b.pods["a"], closedRules(b.host.V1().SupportedFeatures()))
			return soon(func() bool { return b.allowed("a", hns.In, packet("1.1.1.1", "10.65.0.1", 80)) })
		}},
		"StatusReportingInterval": {Set: func(c *Config) { c.StatusReportingInterval = 10 * time.Second }, Has: func(t *testing.T, c Config) bool {
			b := quickBench(t, c, newHost(t, hcn.L2Bridge), func(o *Options) { o.Clock = hasty{} })
			r := b.start()
			return soon(func() bool { return r.beat.Load() > 1 })
		}},
		"PostInSyncCallback": postInSync(),
		"DebugSimulateDataplaneHangAfter": {Set: func(c *Config) { c.DebugSimulateDataplaneHangAfter = time.Millisecond },
			Has: func(t *testing.T, c Config) bool {
				b := quickBench(t, c, newHost(t, hcn.L2Bridge))
				b.d.Start()
				time.Sleep(20 * time.Millisecond)
				return !syncedWithin(t, b, time.Second)
			}},
	}
}

// postInSync counts the calls of the callback of the proof that runs.
func postInSync() proof[Config] {
	var calls atomic.Int32
	return proof[Config]{Set: func(c *Config) { c.PostInSyncCallback = func() { calls.Add(1) } }, Has: func(t *testing.T, c Config) bool {
		calls.Store(0)
		return synced(t, quickBench(t, c, newHost(t, hcn.L2Bridge))) && soon(func() bool { return calls.Load() == 1 })
	}}
}

// hasty is a clock that is a thousand times faster than real time.
type hasty struct{}

var hastyEpoch = time.Now()

func (hasty) Now() time.Time { return hastyEpoch.Add(time.Since(hastyEpoch) * 1000) }

func (hasty) NewTimer(d time.Duration) driver.Timer { return hastyTimer{time.NewTimer(d / 1000)} }

type hastyTimer struct{ *time.Timer }

func (t hastyTimer) C() <-chan time.Time        { return t.Timer.C }
func (t hastyTimer) Reset(d time.Duration) bool { return t.Timer.Reset(d / 1000) }

// optionsBench returns a bench with the given options. Options that would make a test slow have short defaults, except for the field under
// test.
func optionsBench(t *testing.T, config Config, o Options, host *hnsmem.Host) *bench {
	t.Helper()
	config.Hostname = "node1"
	d, err := New(host.V1(), config, o)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, d: d, host: host, pods: map[string]string{}, status: map[any]string{}}
}

// TestEachOptionHasAnEffect is the same test for Options.
func TestEachOptionHasAnEffect(t *testing.T) {
	var logged logCounter
	proofs := map[string]proof[Options]{
		"Log": {Set: func(o *Options) { o.Log = slog.New(&logged) }, Has: func(t *testing.T, o Options) bool {
			logged.n.Store(0)
			synced(t, optionsBench(t, both, o, newHost(t, hcn.L2Bridge)))
			return logged.n.Load() > 0
		}},
		"Metrics": {Set: func(o *Options) { o.Metrics = prometheus.NewRegistry() }, Has: func(t *testing.T, o Options) bool {
			optionsBench(t, both, o, newHost(t, hcn.L2Bridge))
			reg, is := o.Metrics.(*prometheus.Registry)
			if !is {
				return false
			}
			families, err := reg.Gather()
			return err == nil && len(families) > 0 && strings.HasPrefix(families[0].GetName(), "felix_win_dataplane_")
		}},
		"MetricPrefix": {Set: func(o *Options) { o.MetricPrefix = "contiv_windows_" }, Has: func(t *testing.T, o Options) bool {
			reg := prometheus.NewRegistry()
			o.Metrics = reg
			optionsBench(t, both, o, newHost(t, hcn.L2Bridge))
			families, err := reg.Gather()
			return err == nil && len(families) > 0 && strings.HasPrefix(families[0].GetName(), "contiv_windows_")
		}},
		"Clock": {Set: func(o *Options) { o.Clock = hasty{} }, Has: func(t *testing.T, o Options) bool {
			b := optionsBench(t, Config{StatusReportingInterval: 10 * time.Second}, o, newHost(t, hcn.L2Bridge))
			r := b.start()
			return soon(func() bool { return r.beat.Load() > 0 })
		}},
		"HCN": {Set: func(o *Options) { o.HCN = newHost(t, hcn.Overlay).V2() }, Has: func(t *testing.T, o Options) bool {
			_, err := New(hnsmem.New().V1(), Config{Hostname: "node1", VXLANEnabled: true}, o)
			return err == nil // without it, the driver needs this machine's HCN
		}},
		"HostAddresses": {Set: func(o *Options) {
			o.HostAddresses = func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("203.0.113.77")}, nil }
		}, Has: func(t *testing.T, o Options) bool {
			b := optionsBench(t, both, o, newHost(t, hcn.L2Bridge))
			synced(t, b, openProfile(), policy("p"), endpoint("a", 1, withTiers(ingress("p"))))
			return b.allowed("a", hns.In, packet("203.0.113.77", "10.65.0.1", 80))
		}},
		"HostInterval": {Set: func(o *Options) { o.HostInterval = 10 * time.Millisecond }, Has: func(t *testing.T, o Options) bool {
			var looks atomic.Int32
			o.HostAddresses = func() ([]netip.Addr, error) { // the node gets another address some time after the start
				return []netip.Addr{netip.AddrFrom4([4]byte{203, 0, 113, byte(min(1+looks.Add(1)/5, 2))})}, nil
			}
			b := optionsBench(t, both, o, newHost(t, hcn.L2Bridge))
			synced(t, b, openProfile(), policy("p"), endpoint("a", 1, withTiers(ingress("p"))))
			return soon(func() bool { return b.allowed("a", hns.In, packet("203.0.113.2", "10.65.0.1", 80)) })
		}},
	}
	maps.Copy(proofs, timeProofs())
	drivertest.ProveFields(t, proofs)
}

// timeProofs returns the proofs for options that are durations.
func timeProofs() map[string]proof[Options] {
	return map[string]proof[Options]{
		"RetryInterval": {Set: func(o *Options) { o.RetryInterval = 10 * time.Millisecond }, Has: func(t *testing.T, o Options) bool {
			b := optionsBench(t, both, o, newHost(t, hcn.L2Bridge))
			var n atomic.Int32
			b.host.Hook(func(c hnsmem.Call) error {
				if c.Op == "ApplyACLs" && n.Add(1) == 1 {
					return errors.New("no luck")
				}
				return nil
			})
			r := b.start()
			r.send(openProfile(), endpoint("a", 1), &proto.InSync{})
			return soon(func() bool { return r.received("a") == "up" })
		}},
		"CallTimeout": {Set: func(o *Options) { o.CallTimeout = 20 * time.Millisecond }, Has: func(t *testing.T, o Options) bool {
			b := optionsBench(t, both, o, newHost(t, hcn.L2Bridge))
			release := make(chan struct{})
			b.host.Hook(func(c hnsmem.Call) error { <-release; return nil })
			defer close(release)
			r := b.start()
			r.send(&proto.InSync{})
			done := make(chan error, 1)
			if err := b.d.SendMessage(driver.Flush{Done: done}); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-done:
				return err != nil
			case <-time.After(time.Second):
				return false
			}
		}},
	}
}

func egress(tier, policy string) *proto.TierInfo {
	return &proto.TierInfo{Name: tier, EgressPolicies: []string{policy}}
}

// TestConfig: errors name the field.
func TestConfig(t *testing.T) {
	for field, c := range map[string]Config{
		"VXLANID": {VXLANID: 4095}, "VXLANPort": {VXLANPort: 70000}, "MaxIPSetSize": {MaxIPSetSize: -1},
	} {
		if _, err := New(hnsmem.New().V1(), c, Options{}); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := New(nil, Config{}, Options{}); err == nil || !strings.Contains(err.Error(), "hns.Open") {
		t.Errorf("without HNS: %v", err)
	}
	c, err := Config{}.withDefaults()
	if err != nil || c.VXLANID != 4096 || c.VXLANPort != 4789 || c.MaxIPSetSize != 1048576 || c.Hostname == "" ||
		!c.Networks.MatchString("Calico") || !c.Networks.MatchString("contiv") || c.Networks.MatchString("nat") {
		t.Errorf("defaults: %+v, %v", c, err)
	}
}

// TestKubeNetwork: the environment variable KUBE_NETWORK names the networks, as with Felix.
func TestKubeNetwork(t *testing.T) {
	t.Setenv("KUBE_NETWORK", "^pods$")
	if c, err := (Config{}).withDefaults(); err != nil || !c.Networks.MatchString("pods") || c.Networks.MatchString("contiv") {
		t.Errorf("%v, %v", c.Networks, err)
	}
	t.Setenv("KUBE_NETWORK", "(")
	if _, err := (Config{}).withDefaults(); err == nil || !strings.Contains(err.Error(), "KUBE_NETWORK") {
		t.Errorf("%v", err)
	}
}
