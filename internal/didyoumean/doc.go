// Package didyoumean suggests an existing name for a name that does not exist.
package didyoumean
