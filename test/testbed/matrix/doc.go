// Package matrix selects the combinations (dataplane, transport, family, ...) in which a test runs. All combinations of all tests take hours
// of processor time. So `make test` runs each test in the combinations that are the most common among users, and those in which its code
// differs. `make test-all` runs all of them: before a release, and before a change of the data path is complete.
package matrix
