package ipset

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics has the meaning of Felix's metrics; a line is a member added or removed, or another command.
type metrics struct {
	calls, errors, lines prometheus.Counter
	mine, total          prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, prefix string) (*metrics, error) {
	calls, failures, lines, mine, total := "ipset_calls_total", "ipset_errors_total", "ipset_lines_total", "ipsets_own", "ipsets"
	if prefix == "" { // Felix's names
		prefix, calls, failures, lines, mine, total = "felix_", "ipset_calls", "ipset_errors", "ipset_lines_executed", "ipsets_calico",
			"ipsets_total"
	}
	m := &metrics{
		calls: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + calls, Help: "Number of exchanges with the kernel about IP sets.",
		}),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + failures, Help: "Number of exchanges about IP sets that failed, at least in part.",
		}),
		lines: prometheus.NewCounter(prometheus.CounterOpts{
			Name: prefix + lines, Help: "Number of IP set operations executed (members added or removed, sets made).",
		}),
		mine: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: prefix + mine, Help: "Number of IP sets in the kernel that belong to this agent.",
		}),
		total: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: prefix + total, Help: "Total number of IP sets in the kernel.",
		}),
	}
	if reg == nil {
		return m, nil
	}
	var err error
	m.calls = register(reg, m.calls, &err)
	m.errors = register(reg, m.errors, &err)
	m.lines = register(reg, m.lines, &err)
	m.mine = register(reg, m.mine, &err)
	m.total = register(reg, m.total, &err)
	return m, err
}

// register registers c; if another instance has already registered this metric, it returns that one.
func register[C prometheus.Collector](reg prometheus.Registerer, c C, failed *error) C {
	err := reg.Register(c)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			return same
		}
	}
	*failed = errors.Join(*failed, err)
	return c
}

func (m *metrics) call(lines int, err error) {
	m.calls.Inc()
	m.lines.Add(float64(lines))
	if err != nil {
		m.errors.Inc()
	}
}

func (m *metrics) counts(mine, total int) {
	m.mine.Set(float64(mine))
	m.total.Set(float64(total))
}
