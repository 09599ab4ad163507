// Package walks has three pages that follow an event from the first function to the last: a pod, a service, a policy. Its test
// compares each step with the code, so that a page cannot become outdated.
package walks
