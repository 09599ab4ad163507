// Package logs is the log format of all our programs: one line for each record, the cause of a fault first, no line longer than
// maxLine. A Ring keeps the newest lines for support bundles (GET Path).
package logs
