// Package conffile reads controller.conf: YAML (JSON is a subset of it) with contiv's options. It is strict: an option that does not exist
// is an error that suggests the one which was probably meant.
package conffile
