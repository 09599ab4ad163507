// Package environ refuses environment variables that look like ours and are not: a misspelt one that is silently ignored starts
// a node with another configuration than its operator believes.
package environ
