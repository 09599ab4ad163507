// Package lifecycle runs the agent's background work as named jobs. Every goroutine of the agent belongs to a Group, has a
// name that is shown in logs and a context that ends it; a Group stops its jobs in reverse order of start and reports
// which one did not stop in time. There are no bare go statements elsewhere (test/arch).
package lifecycle
