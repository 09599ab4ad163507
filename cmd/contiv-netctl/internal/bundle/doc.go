// Package bundle writes support bundles: a tar.gz of texts in which everything that looks like a secret is replaced. Agents do not show
// secrets in the first place; this is the second line of defence, for texts that other programs have written (logs, annotations, VPP's
// output).
package bundle
