// Package poll waits in tests for a condition, where no event reports that it is true.
package poll
