// Package browser drives a headless Chromium for tests of pages: it opens an address, clicks, types, reads the visible text, and saves
// screenshots. If there is no Chromium (apt-get install chromium), a test that needs it is skipped with a message of one line.
//
// Screenshots are test artefacts: they are written to CONTIV_SCREENSHOTS if that is set, otherwise to the folder of "go test
// -artifacts".
package browser
