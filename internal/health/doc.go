// Package health joins what the agent's long-running parts say about themselves to the two answers that Kubernetes asks for:
// is the process alive (else restart it), is it ready (else do not count on it).
//
// A part registers a Reporter with the answers that it will give and a timeout, and reports from the very goroutine whose
// progress it stands for. The aggregate is true when every reporter that declared the answer has said yes within its timeout:
// a part that hangs makes the answer false by silence. So registering a reporter that does not report is a failure, too.
package health
