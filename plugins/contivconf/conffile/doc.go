// Package conffile reads contiv.conf: YAML (JSON is a subset of it). It is strict: an unknown option is an error that suggests the option
// with the closest name, because an operator would spend much time on a misspelt option that is silently ignored. Package contivconf
// interprets the values.
package conffile
