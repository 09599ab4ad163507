// Package conffile reads contiv.conf: YAML, of which JSON is a part. It is strict: an option that does not exist is an error
// that suggests the one which was probably meant, since a misspelt option that is silently ignored costs its author a day.
// What the values mean is contivconf's business.
package conffile
