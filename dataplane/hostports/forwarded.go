package hostports

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	linux_nodeports "contiv.dev/vswitch/dataplane/nb/linux/nodeports"
)

// forwardedTable is the name of the tables of forwarded connections. No other program uses it.
const forwardedTable = "contiv-forwarded"

// forwardedMark marks packets that the host forwards to VPP, from the forward hook to the postrouting hook.
const forwardedMark = 0x20000000

func validateForwarded(v *linux_nodeports.Forwarded) error {
	errs := []error{checkAddress("own", v.Own, v.Family), checkDevice(v.Device)}
	for field, text := range map[string]string{"translated": v.Translated, "masqueraded": v.Masqueraded} {
		if text != "" {
			errs = append(errs, checkAddress(field, text, v.Family))
		}
	}
	if v.Self != "" {
		errs = append(errs, checkAddress("self", v.Self, v.Family))
		for _, a := range v.Others {
			errs = append(errs, checkAddress("others", a, v.Family))
		}
	} else if (v.Translated == "") != (v.Masqueraded == "") {
		errs = append(errs, errors.New("translated and masqueraded: set both or neither"))
	}
	return errors.Join(errs...)
}

// forwardedScript replaces the table. Chain translated runs before all chains that masquerade at the usual priority: if two chains change the
// source, the kernel uses the first. Masquerading by other programs is visible only after them, when the kernel's translation is complete. So
// chain masqueraded rewrites each packet, and chain answers rewrites the replies before connection tracking. Both keep ports: the ports of Own
// are free of conflicts, so those of Masqueraded are, too. ICMP errors about such packets are not translated back.
func forwardedScript(f *linux_nodeports.Forwarded) (script, mark string) {
	if f.Self != "" {
		_, mark := forwardedRules(f)
		return "", mark
	}
	ip := familyName(f.Family)
	var b strings.Builder
	chain := func(name, kind, hook string, priority int, rules ...string) {
		fmt.Fprintf(&b, "\tchain %s {\n\t\ttype %s hook %s priority %d\n\t\t%s\n\t}\n", name, kind, hook, priority,
			strings.Join(slices.DeleteFunc(rules, func(r string) bool { return r == "" }), "\n\t\t"))
	}
	to := func(a, format string, args ...any) string {
		if a == "" {
			return ""
		}
		return fmt.Sprintf(format, args...)
	}
	chain("through", "filter", "forward", 200,
		to(f.Translated, "iifname %q %s daddr { %s, %s } drop", f.Device, ip, f.Translated, f.Masqueraded), // of a connection that has ended
		fmt.Sprintf("oifname %q meta mark set meta mark or %#x", f.Device, forwardedMark))
	if f.Translated != "" {
		chain("translated", "nat", "postrouting", 99,
			fmt.Sprintf("oifname %q ct status dnat fib saddr type != local snat to %s", f.Device, f.Translated))
	}
	chain("masqueraded", "filter", "postrouting", 350,
		fmt.Sprintf("meta mark & %#x == 0 return", forwardedMark),
		fmt.Sprintf("meta mark set meta mark & %#x", ^uint32(forwardedMark)),
		"ct direction reply return",
		"fib saddr type != local return",
		to(f.Masqueraded, "%s saddr %s %s saddr set %s return", ip, f.Own, ip, f.Masqueraded),
		"drop")
	if f.Masqueraded != "" {
		chain("answers", "filter", "prerouting", -300,
			fmt.Sprintf("iifname %q %s daddr %s %s daddr set %s", f.Device, ip, f.Masqueraded, ip, f.Own))
	}
	return finish(ip, forwardedTable, b.String())
}
