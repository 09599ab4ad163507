// Package walks has three pages that follow an event from the first function to the last: a pod, a service, a policy. Its test holds
// each step to the code, so that a page cannot become stale.
package walks
