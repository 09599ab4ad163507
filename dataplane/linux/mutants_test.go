package intdataplane

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"contiv.dev/vswitch/dataplane/driver"
	"contiv.dev/vswitch/dataplane/drivertest"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/health"
)

type proof = drivertest.Proof[Config]

// TestEachConfigFieldHasAnEffect is generated from the type: a new field without a proof fails. Each proof shows an effect: on a packet, on
// the kernel's rules and links, on a call of iptables or of netlink, or on time.
func TestEachConfigFieldHasAnEffect(t *testing.T) {
	proofs := rulesProofs(t)
	for _, more := range []map[string]proof{kernelProofs(), iptablesProofs(t), loopProofs(), callbackProofs()} {
		maps.Copy(proofs, more)
	}
	drivertest.ProveFields(t, proofs)
}

// rulesProofs returns the proofs of fields with an effect on rules, sets and routes.
func rulesProofs(t *testing.T) map[string]proof {
	return map[string]proof{
		"IPv6Enabled": {Set: func(c *Config) { c.IPv6Enabled = true }, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c)
			b.must(openProfile(), endpoint("a", "calia", 1), ifUp("calia", 3))
			return b.routes[table.IPv6] != nil && strings.Contains(b.routes[table.IPv6].text(), "fd00:65::1/128")
		}},
		"RuleRendererOverride": {Set: func(c *Config) {
			render, err := rules.NewRenderer(rules.Config{EndpointToHostAction: "ACCEPT"})
			if err != nil {
				t.Fatal(err)
			}
			c.RuleRendererOverride = render
		}, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c)
			b.must(openProfile(), endpoint("a", "calia", 1))
			return b.verdict(packet("calia", "", "10.65.0.1", "192.0.2.1", 80)) == "accept"
		}},
		"MaxIPSetSize": {Set: func(c *Config) { c.MaxIPSetSize = 2 }, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c)
			b.must(openProfile(), ipSet("s", "198.51.100.1", "198.51.100.2", "198.51.100.3"), policy("p", fromSet("allow", "s")),
				endpoint("a", "calia", 1, withTiers(ingress("p"))))
			return b.verdict(packet("eth0", "calia", "198.51.100.1", "10.65.0.1", 80)) == "drop"
		}},
		"ExternalNodesCidrs": {Set: func(c *Config) {
			c.ExternalNodesCidrs, c.RulesConfig.VXLANEnabled = []string{"198.51.100.0/24"}, true
		}, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c)
			b.must()
			p := rulestest.Packet{In: "eth0", Src: addr("198.51.100.7"), Dst: addr("192.0.2.1"), Proto: 17, DstPort: 4789}
			p.Local = append(p.Local, addr("192.0.2.1"))
			return b.verdict(p) == "accept"
		}},
		"RulesConfig": {Set: func(c *Config) { c.RulesConfig.EndpointToHostAction = "ACCEPT" }, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c)
			b.must(openProfile(), endpoint("a", "calia", 1))
			return b.verdict(packet("calia", "", "10.65.0.1", "192.0.2.1", 80)) == "accept"
		}},
		"IgnoreLooseRPF": {Set: func(c *Config) { c.IgnoreLooseRPF = true }, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c)
			b.sysctls.values["net/ipv4/conf/all/rp_filter"] = "2"
			b.start()
			return b.d.SendMessage(&proto.InSync{}) == nil
		}},
	}
}

// loopProofs returns the proofs of times.
func loopProofs() map[string]proof {
	refreshed := func(set func(*Config), done func(*bench) int) proof {
		return proof{Set: set, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c)
			b.start()
			b.send(&proto.InSync{})
			return soon(func() bool {
				n := 0
				b.inspect(func() { n = done(b) })
				return n >= 2
			})
		}}
	}
	return map[string]proof{
		"IPSetsRefreshInterval": refreshed(func(c *Config) { c.IPSetsRefreshInterval = 10 * time.Millisecond },
			func(b *bench) int { return b.fake.Resyncs }),
		"IptablesRefreshInterval": refreshed(func(c *Config) { c.IptablesRefreshInterval = 10 * time.Millisecond },
			func(b *bench) int { return b.fake.Resyncs }),
		"RouteRefreshInterval": refreshed(func(c *Config) { c.RouteRefreshInterval = 10 * time.Millisecond },
			func(b *bench) int { return b.routes[4].resyncs }),
		"StatusReportingInterval": {Set: func(c *Config) { c.StatusReportingInterval = 10 * time.Second }, Has: func(t *testing.T, c Config) bool {
			return newBenchWith(t, c, Options{Clock: hasty{}}, rulestest.New()).reports(2)
		}},
		"DebugSimulateDataplaneHangAfter": {Set: func(c *Config) { c.DebugSimulateDataplaneHangAfter = time.Millisecond }, Has: hangs},
	}
}

// hangs reports whether the driver's loop no longer answers. Such a driver cannot be stopped, as simulated.
func hangs(t *testing.T, c Config) bool {
	b := newBench(t, c)
	b.d.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		_ = b.d.loop.Stop(ctx)
	})
	b.send(&proto.InSync{})
	return soon(func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		return errors.Is(b.d.Flush(ctx), context.DeadlineExceeded)
	})
}

// callbackProofs returns the proofs of the driver's callbacks.
func callbackProofs() map[string]proof {
	var restarts, synced atomic.Int32
	return map[string]proof{
		"ConfigChangedRestartCallback": {Set: func(c *Config) { c.ConfigChangedRestartCallback = func() { restarts.Add(1) } },
			Has: func(t *testing.T, c Config) bool {
				restarts.Store(0)
				b := newBench(t, c)
				b.start()
				b.send(&proto.InSync{})
				b.monitor.updates <- ifUp(KubeIPVSInterface, 9)
				return soon(func() bool { return restarts.Load() == 1 })
			}},
		"PostInSyncCallback": {Set: func(c *Config) { c.PostInSyncCallback = func() { synced.Add(1) } }, Has: func(t *testing.T, c Config) bool {
			synced.Store(0)
			b := newBench(t, c)
			b.start()
			b.send(&proto.InSync{})
			return soon(func() bool { return synced.Load() == 1 })
		}},
		"HealthAggregator": {Set: func(c *Config) { c.HealthAggregator = health.NewHealthAggregator() }, Has: func(t *testing.T, c Config) bool {
			b := newBench(t, c)
			b.start()
			b.send(&proto.InSync{})
			return c.HealthAggregator != nil && soon(func() bool {
				s := c.HealthAggregator.Summary()
				return s.Live && s.Ready && strings.Contains(s.Detail, driverName)
			})
		}},
	}
}

// reports reports whether the process's status is reported that often. Time runs fast.
func (b *bench) reports(want int) bool {
	b.start()
	got := make(chan int, 1)
	b.d.jobs.Go("test: status", func(context.Context) error {
		n := 0
		for n < want {
			msg, err := b.d.RecvMessage()
			if err != nil {
				break // stopped
			}
			if _, is := msg.(*proto.ProcessStatusUpdate); is {
				n++
			}
		}
		got <- n
		return nil
	})
	return within(time.Second, func() bool { return len(got) == 1 }) && <-got == want
}

// hasty is a clock that runs a thousand times faster than real time.
type hasty struct{}

var hastyEpoch = time.Now()

func (hasty) Now() time.Time { return hastyEpoch.Add(time.Since(hastyEpoch) * 1000) }

func (hasty) NewTimer(d time.Duration) driver.Timer { return hastyTimer{time.NewTimer(d / 1000)} }

type hastyTimer struct{ *time.Timer }

func (t hastyTimer) C() <-chan time.Time        { return t.Timer.C }
func (t hastyTimer) Reset(d time.Duration) bool { return t.Timer.Reset(d / 1000) }

// soon reports whether a condition becomes true within a short time. A proof that needs more time is repeated.
func soon(is func() bool) bool { return within(300*time.Millisecond, is) }

func within(d time.Duration, is func() bool) bool {
	for deadline := time.Now().Add(d); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return false
}

type optionProof = drivertest.Proof[Options]

// TestEachOptionHasAnEffect is the same test for Options.
func TestEachOptionHasAnEffect(t *testing.T) {
	proofs := optionProofs()
	maps.Copy(proofs, kernelOptionProofs())
	drivertest.ProveFields(t, proofs)
}

// optionProofs returns the proofs with fakes.
func optionProofs() map[string]optionProof {
	names := func(t *testing.T, o Options) (all []string) {
		newBenchWith(t, both, o, rulestest.New())
		if reg, is := o.Metrics.(*prometheus.Registry); is {
			families, err := reg.Gather()
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range families {
				all = append(all, f.GetName())
			}
		}
		return all
	}
	failing := func() *rulestest.Fake { // its first apply fails
		fake, failed := rulestest.New(), false
		fake.Fail = func() error {
			if failed {
				return nil
			}
			failed = true
			return errors.New("no luck")
		}
		return fake
	}
	var logged atomic.Int32
	return map[string]optionProof{
		"Log": {Set: func(o *Options) { o.Log = slog.New(countingHandler{&logged}) }, Has: func(t *testing.T, o Options) bool {
			logged.Store(0)
			b := newBenchWith(t, both, o, failing())
			b.start()
			b.send(&proto.InSync{})
			_ = b.flush() // the first apply failed, which is logged; this one must not fail
			return logged.Load() > 0
		}},
		"Metrics": {Set: func(o *Options) { o.Metrics = prometheus.NewRegistry() }, Has: func(t *testing.T, o Options) bool {
			return slices.Contains(names(t, o), "felix_int_dataplane_failures")
		}},
		"MetricPrefix": {Set: func(o *Options) { o.MetricPrefix = "proof_" }, Has: func(t *testing.T, o Options) bool {
			o.Metrics = prometheus.NewRegistry()
			return slices.Contains(names(t, o), "proof_failures_total")
		}},
		"Clock": {Set: func(o *Options) { o.Clock = hasty{} }, Has: func(t *testing.T, o Options) bool {
			return newBenchWith(t, Config{StatusReportingInterval: 10 * time.Second}, o, rulestest.New()).reports(1)
		}},
		"NoIPv6Forwarding": {Set: func(o *Options) { o.NoIPv6Forwarding = true }, Has: func(t *testing.T, o Options) bool {
			b := newBenchWith(t, both, o, rulestest.New())
			b.must()
			_, wrote := b.sysctls.values[forwardIPv6]
			return !wrote
		}},
		"RetryInterval": {Set: func(o *Options) { o.RetryInterval = 10 * time.Millisecond }, Has: func(t *testing.T, o Options) bool {
			b := newBenchWith(t, both, o, failing())
			b.start()
			b.send(&proto.InSync{})
			return within(2*time.Second, func() bool {
				n := 0
				b.inspect(func() { n = b.fake.Applies })
				return n > 1
			})
		}},
	}
}

// countingHandler counts records.
type countingHandler struct{ n *atomic.Int32 }

func (countingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h countingHandler) Handle(context.Context, slog.Record) error {
	h.n.Add(1)
	return nil
}

func (h countingHandler) WithAttrs([]slog.Attr) slog.Handler { return h }
func (h countingHandler) WithGroup(string) slog.Handler      { return h }
