// Package documented has a test for each package with a published API: it uses each line of the API's documentation as a program outside
// of this project would. If an identifier is missing or has another type, the test does not compile.
package documented
