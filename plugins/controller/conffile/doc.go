// Package conffile reads controller.conf: YAML (JSON is a subset of it) with contiv's options. It is strict: an unknown option is an error
// that suggests the option with the closest name.
package conffile
