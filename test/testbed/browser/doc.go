// Package browser drives a headless Chromium for tests of pages: it opens an address, clicks, types, reads what a user sees, and keeps
// screenshots. A test that needs it is skipped, with one line, where there is no Chromium (apt-get install chromium).
//
// Screenshots are test artefacts: in CONTIV_SCREENSHOTS if that is set, else where "go test -artifacts" puts them.
package browser
