// Package environ rejects unknown environment variables with our prefix: if a misspelt variable were silently ignored, a node
// would start with another configuration than its operator intended.
package environ
