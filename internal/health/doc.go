// Package health combines the reports of the agent's long-running parts into the two answers that Kubernetes polls: liveness
// (if false, the process is restarted) and readiness (if false, the node is not used).
//
// A part registers a Reporter with the answers that it determines and a timeout, and reports from the goroutine whose
// progress it measures. An answer is true when every reporter that declared it has reported true within its timeout: a part
// that hangs makes the answer false because it does not report. So a reporter that is registered and never reports is a
// failure, too.
package health
