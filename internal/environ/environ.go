package environ

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"contiv.dev/vswitch/internal/didyoumean"
)

// Prefix is the prefix of the names of our variables.
const Prefix = "CONTIV_"

// shared returns the variables that the manifests set in every container, whichever of our programs runs
// there.
func shared() []string {
	return []string{"CONTIV_NODE_NAME", "CONTIV_NAMESPACE", "CONTIV_POD_NAME", "CONTIV_POD_IP", "CONTIV_KUBERNETES_SERVER"}
}

// serviceLink matches the variables that Kubernetes sets for a service called contiv-… unless
// enableServiceLinks is false.
var serviceLink = regexp.MustCompile(`^(CONTIV_[A-Z0-9_]+?)_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// Check rejects variables of environ ("NAME=value") that are neither known nor shared.
func Check(known, environ []string) error {
	known = append(shared(), known...)
	names := map[string]bool{}
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		names[name] = true
	}
	var errs []error
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, Prefix) || slices.Contains(known, name) {
			continue
		}
		if m := serviceLink.FindStringSubmatch(name); m != nil && names[m[1]+"_SERVICE_HOST"] {
			continue
		}
		if meant := didyoumean.Closest(name, known); meant != "" {
			errs = append(errs, fmt.Errorf("environment variable %s is unknown; did you mean %s?", name, meant))
		} else {
			errs = append(errs, fmt.Errorf("environment variable %s is unknown; remove it, or see --help for the flags, each of which can "+
				"be set as CONTIV_<FLAG>", name))
		}
	}
	return errors.Join(errs...)
}
