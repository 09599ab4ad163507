// Package matrix selects the combinations (dataplane, transport, family, ...) that a test runs in. All combinations of all tests take hours of
// processor time. So `make test` runs each test in the combinations that users have most, and those where its code differs. `make test-all`
// runs all of them: before a release, and before a change of the data path is called done.
package matrix
