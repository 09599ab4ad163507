// Package configref writes docs/configuration.md from the code: contiv.conf and controller.conf from the structs that read them,
// flags from the programs' own --help, the chart's values from values.yaml and its schema. `make docs` runs it; a test in docs compares
// the file with what it writes.
package configref
