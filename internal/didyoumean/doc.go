// Package didyoumean finds the name that was probably meant by a name that does not exist.
package didyoumean
