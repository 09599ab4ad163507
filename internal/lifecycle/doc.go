// Package lifecycle runs the agent's background work as named jobs. A job belongs to a Group, and has a name that is shown in logs and a
// context that ends it. A Group stops its jobs in reverse order of start and reports which ones did not stop in time.
//
// Other packages do not start goroutines themselves. test/arch checks this and lists the few exceptions, such as a call in a network namespace,
// which needs an operating system thread of its own (internal/nsdo).
package lifecycle
