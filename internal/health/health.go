package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// HealthReport is the state of one part, or in a summary of the whole process.
type HealthReport struct {
	Live  bool
	Ready bool
	// Detail is one line for the operator; it may be empty if Live and Ready are true.
	Detail string
}

// HealthAggregator combines reports. The zero value is ready for use; a nil aggregator discards reports. Safe for concurrent use.
type HealthAggregator struct {
	mu        sync.Mutex
	reporters map[string]*Reporter
}

// NewHealthAggregator returns an aggregator without reporters, whose summary is live and ready.
func NewHealthAggregator() *HealthAggregator { return &HealthAggregator{} }

// Reporter reports the state of one part to the aggregator. A nil Reporter discards reports.
type Reporter struct {
	of       *HealthAggregator
	name     string
	declares HealthReport
	timeout  time.Duration

	// Guarded by of.mu.
	last HealthReport
	at   time.Time // zero: no report yet
}

// Register creates a reporter called name, replacing an older one of that name. declares has true for each of the answers (Live, Ready)
// that the part determines; the others do not depend on it. A report counts for timeout (≤ 0: until the next one).
func (a *HealthAggregator) Register(name string, declares HealthReport, timeout time.Duration) *Reporter {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reporters == nil {
		a.reporters = map[string]*Reporter{}
	}
	r := &Reporter{of: a, name: name, declares: declares, timeout: timeout}
	a.reporters[name] = r
	return r
}

// Report replaces the part's report and restarts its timeout.
func (r *Reporter) Report(report HealthReport) {
	if r == nil {
		return
	}
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	r.last, r.at = report, time.Now()
}

// Close removes the reporter from the aggregate, unless another one of its name has replaced it.
func (r *Reporter) Close() {
	if r == nil {
		return
	}
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if r.of.reporters[r.name] == r {
		delete(r.of.reporters, r.name)
	}
}

// Summary returns the conjunction of all reports. Detail has a line for every part: its name, its answers and its own detail.
func (a *HealthAggregator) Summary() HealthReport {
	sum := HealthReport{Live: true, Ready: true}
	if a == nil {
		return sum
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	var lines []string
	parts := slices.SortedFunc(maps.Values(a.reporters), func(x, y *Reporter) int { return cmp.Compare(x.name, y.name) })
	for _, r := range parts {
		report := r.effective(now)
		sum.Live = sum.Live && (report.Live || !r.declares.Live)
		sum.Ready = sum.Ready && (report.Ready || !r.declares.Ready)
		lines = append(lines, r.line(report))
	}
	sum.Detail = strings.Join(lines, "\n")
	return sum
}

// effective returns the last report, or a negative report that says why the last one does not count.
func (r *Reporter) effective(now time.Time) HealthReport {
	if r.at.IsZero() {
		return HealthReport{Detail: "has not reported yet"}
	}
	if age := now.Sub(r.at); r.timeout > 0 && age > r.timeout {
		return HealthReport{Detail: fmt.Sprintf("hangs: no report for %s, the limit is %s; last report: %s",
			age.Round(time.Second), r.timeout, cmp.Or(r.last.Detail, "nothing special"))}
	}
	return r.last
}

func (r *Reporter) line(report HealthReport) string {
	var words []string
	for _, answer := range []struct {
		declared, given bool
		yes, no         string
	}{
		{r.declares.Live, report.Live, "live", "not live"},
		{r.declares.Ready, report.Ready, "ready", "not ready"},
	} {
		switch {
		case !answer.declared:
		case answer.given:
			words = append(words, answer.yes)
		default:
			words = append(words, answer.no)
		}
	}
	line := r.name + ": " + strings.Join(words, ", ")
	if report.Detail != "" {
		line += " (" + report.Detail + ")"
	}
	return line
}
