// Package conffile reads controller.conf: YAML, of which JSON is a part, with contiv's options. It is strict: an option that does
// not exist is an error that suggests the one which was probably meant.
package conffile
