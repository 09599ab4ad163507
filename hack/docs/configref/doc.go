// Package configref generates docs/configuration.md from the code: contiv.conf and controller.conf from the structs that hold their
// options, flags from the programs' own --help, the chart's values from values.yaml and its schema. `make docs` runs it; a test in docs
// compares the file with the generated text.
package configref
