// Command codemetrics prints measurements of the structure of the code: lengths of functions and files, widths of interfaces, imports, reach of
// commits. Run it from the module's root with `go run ./hack/codemetrics`; -markdown prints the rows of a Markdown table.
//
// It reads the source files that git tracks, the module's import graph, and the history of the checked-out branch. Generated code
// (protobuf, VPP bindings) is left out. It only measures; test/arch checks the limits.
package main
