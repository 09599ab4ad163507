package intdataplane

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"contiv.dev/vswitch/dataplane/drivertest"
	"contiv.dev/vswitch/dataplane/linux/ifacemonitor"
	"contiv.dev/vswitch/dataplane/linux/rules"
	"contiv.dev/vswitch/dataplane/linux/rules/rulestest"
	"contiv.dev/vswitch/dataplane/linux/table"
	"contiv.dev/vswitch/dataplane/proto"
	"contiv.dev/vswitch/internal/health"
)

type proof = drivertest.Proof[Config]

// TestEachConfigFieldHasAnEffect is generated from the type: a new field without a proof fails. Fields that a part of the driver uses are
// proven to reach it; that the part heeds them is proven by its own tests.
func TestEachConfigFieldHasAnEffect(t *testing.T) {
	proofs := rulesProofs(t)
	maps.Copy(proofs, partProofs())
	maps.Copy(proofs, loopProofs())
	maps.Copy(proofs, callbackProofs())
	drivertest.ProveFields(t, proofs)
}

// rulesProofs are those of what shows in rules, sets and routes.
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

// partProofs are those of fields that are for one part.
func partProofs() map[string]proof {
	reaches := func(set func(*Config), has func(c Config) bool) proof {
		return proof{Set: set, Has: func(t *testing.T, c Config) bool {
			c, err := c.withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			return has(c)
		}}
	}
	return map[string]proof{
		"IPIPMTU": reaches(func(c *Config) { c.IPIPMTU = 1300 },
			func(c Config) bool { return ipipConfig(c, Options{}).MTU == 1300 }),
		"NetlinkTimeout": reaches(func(c *Config) { c.NetlinkTimeout = 3 * time.Second }, func(c Config) bool {
			return routeConfig(4, nil, c, Options{}).Timeout == 3*time.Second && vxlanConfig(4, c, Options{}).Timeout == 3*time.Second &&
				ipipConfig(c, Options{}).Timeout == 3*time.Second
		}),
		"IptablesPostWriteCheckInterval": reaches(func(c *Config) { c.IptablesPostWriteCheckInterval = 7 * time.Second },
			func(c Config) bool { return iptablesConfig(c, Options{}).PostWriteCheckInterval == 7*time.Second }),
		"IptablesInsertMode": reaches(func(c *Config) { c.IptablesInsertMode = "append" },
			func(c Config) bool {
				return iptablesConfig(c, Options{}).InsertMode == "append" && nftOptions(c, Options{}).Append
			}),
		"IptablesLockFilePath": reaches(func(c *Config) { c.IptablesLockFilePath = "/tmp/lock" },
			func(c Config) bool { return iptablesConfig(c, Options{}).LockFilePath == "/tmp/lock" }),
		"IptablesLockTimeout": reaches(func(c *Config) { c.IptablesLockTimeout = 7 * time.Second },
			func(c Config) bool { return iptablesConfig(c, Options{}).LockTimeout == 7*time.Second }),
		"IptablesLockProbeInterval": reaches(func(c *Config) { c.IptablesLockProbeInterval = 7 * time.Millisecond },
			func(c Config) bool { return iptablesConfig(c, Options{}).LockProbeInterval == 7*time.Millisecond }),
		"IfaceMonitorConfig": reaches(func(c *Config) {
			c.IfaceMonitorConfig = ifacemonitor.Config{InterfaceExcludes: []*regexp.Regexp{regexp.MustCompile("^x$")}, ResyncInterval: time.Hour}
		}, func(c Config) bool {
			m := c.IfaceMonitorConfig
			return len(m.InterfaceExcludes) == 1 && m.InterfaceExcludes[0].MatchString("x") && m.ResyncInterval == time.Hour
		}),
	}
}

// loopProofs are those of times.
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
		"StatusReportingInterval": {Set: func(c *Config) { c.StatusReportingInterval = 7 * time.Second }, Has: func(t *testing.T, c Config) bool {
			return newBench(t, c).d.loopConfig().StatusReportingInterval == 7*time.Second
		}},
		"DebugSimulateDataplaneHangAfter": {Set: func(c *Config) { c.DebugSimulateDataplaneHangAfter = time.Millisecond }, Has: hangs},
	}
}

// hangs says whether the driver's loop answers no more. Such a driver does not stop: that is what is simulated.
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

// callbackProofs are those of the driver's callbacks.
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

// soon says whether something becomes so within a moment. A proof that needs more is run again.
func soon(is func() bool) bool {
	for deadline := time.Now().Add(300 * time.Millisecond); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if is() {
			return true
		}
	}
	return false
}
