// Package pkgindex generates docs/packages.md from the comments of the packages: one line for each, with its first sentence. `make docs` runs it;
// a test in docs compares the file with the generated text.
package pkgindex
