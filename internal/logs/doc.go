// Package logs is the form that all programs of ours log in: one line for each record, the cause of a fault first, no line longer than
// maxLine. A Ring keeps the newest lines for support bundles (GET Path).
package logs
