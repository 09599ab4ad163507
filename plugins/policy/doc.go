// Package policy says that NetworkPolicy objects are not enforced. Nothing renders policies yet; whoever writes one believes that
// it protects something. So each gets a Warning Event, the node logs it once, and a metric counts them (internal/problem).
//
// When policies are rendered, what is rendered is not a problem any more, and what is not, is.
package policy
