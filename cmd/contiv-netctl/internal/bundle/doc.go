// Package bundle writes support bundles: a tar.gz of texts in which what looks like a secret is blacked out. Agents do not show
// secrets in the first place; this is the second line, for texts that others have written (logs, annotations, VPP's output).
package bundle
