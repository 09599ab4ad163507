// Package documented has a test for each package with a published API: each line of its documentation is used as a program outside of this
// project would use it. What is missing, or of another type, does not compile.
package documented
