package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/containernetworking/cni/pkg/types"

	"contiv.dev/vswitch/internal/cniapi"
)

const (
	defaultTimeout = 20 * time.Second
	minMTU         = 68 // the least that IPv4 allows
	maxMTU         = 65535
	maxSocketPath  = 107 // the limit of sockaddr_un
)

// config is our part of the network configuration. It ignores the other keys of the specification; see checkKeys.
type config struct {
	CNIVersion  string      `json:"cniVersion"`
	Name        string      `json:"name"`
	AgentSocket string      `json:"agentSocket"`
	LogFile     string      `json:"logFile"`
	Timeout     duration    `json:"timeout"`
	MTU         int         `json:"mtu"`
	DNS         cniapi.DNS  `json:"dns"`
	IPAM        *types.IPAM `json:"ipam"`

	RuntimeConfig map[string]json.RawMessage `json:"runtimeConfig"`
	PrevResult    *prevResult                `json:"prevResult"`

	ValidAttachments json.RawMessage `json:"cni.dev/valid-attachments"`
	// OldAttachments has the name that version 1.1.0 of the specification used by mistake.
	OldAttachments json.RawMessage `json:"cni.dev/attachments"`
}

// duration is written as "20s" or as a number of seconds.
type duration time.Duration

// UnmarshalJSON implements json.Unmarshaler.
func (d *duration) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil // as if the key were missing
	}
	var text string
	if err := json.Unmarshal(data, &text); err == nil {
		value, err := time.ParseDuration(text)
		*d = duration(value)
		return err
	}
	var seconds float64
	if err := json.Unmarshal(data, &seconds); err != nil || seconds < 0 || seconds > 3600 {
		return fmt.Errorf("%s is neither a duration such as \"20s\" nor a number of seconds up to 3600", data)
	}
	*d = duration(seconds * float64(time.Second))
	return nil
}

// parseConfig parses the part of the network configuration that the command needs. A DEL needs very little of it, so that attachments that
// were added under another configuration, or by an older release, can always be deleted.
func parseConfig(command cniapi.Command, stdin []byte) (*config, error) {
	c := &config{}
	if err := json.Unmarshal(stdin, c); err != nil {
		if command != cniapi.Del {
			return nil, types.NewError(types.ErrInvalidNetworkConfig, "network configuration: "+err.Error(), "")
		}
		if c, err = parseForDel(stdin); err != nil {
			return nil, types.NewError(types.ErrInvalidNetworkConfig, "network configuration: "+err.Error(), "")
		}
	}
	c.setDefaults()
	if command == cniapi.Del {
		c.MTU, c.DNS = 0, cniapi.DNS{}
		return c, c.validateAccess()
	}
	if err := c.applyRuntimeConfig(); err != nil {
		return nil, err
	}
	if command != cniapi.GC { // existing attachments must be removable, whatever the configuration
		if err := checkKeys(stdin); err != nil {
			return nil, err
		}
	}
	return c, c.validate()
}

func parseForDel(stdin []byte) (*config, error) {
	least := struct {
		CNIVersion  string `json:"cniVersion"`
		Name        string `json:"name"`
		AgentSocket string `json:"agentSocket"`
	}{}
	err := json.Unmarshal(stdin, &least)
	return &config{CNIVersion: least.CNIVersion, Name: least.Name, AgentSocket: least.AgentSocket}, err
}

func (c *config) setDefaults() {
	if c.AgentSocket == "" {
		c.AgentSocket = cniapi.DefaultSocket
	}
	if c.Timeout == 0 {
		c.Timeout = duration(defaultTimeout)
	}
}

func invalid(field, format string, args ...any) error {
	return types.NewError(types.ErrInvalidNetworkConfig, fmt.Sprintf("network configuration: %s: ", field)+fmt.Sprintf(format, args...), "")
}

// validateAccess checks the settings that are needed to reach the agent.
func (c *config) validateAccess() error {
	if !filepath.IsAbs(c.AgentSocket) || len(c.AgentSocket) > maxSocketPath || strings.ContainsRune(c.AgentSocket, 0) {
		return invalid("agentSocket", "%q is not an absolute path of at most %d bytes", c.AgentSocket, maxSocketPath)
	}
	if t := time.Duration(c.Timeout); t < 100*time.Millisecond || t > time.Hour {
		return invalid("timeout", "%s is not within 100ms and 1h", t)
	}
	return nil
}

func (c *config) validate() error {
	if err := c.validateAccess(); err != nil {
		return err
	}
	if c.MTU != 0 && (c.MTU < minMTU || c.MTU > maxMTU) {
		return invalid("mtu", "%d is not within %d and %d", c.MTU, minMTU, maxMTU)
	}
	if c.LogFile != "" && !filepath.IsAbs(c.LogFile) {
		return invalid("logFile", "%q is not an absolute path", c.LogFile)
	}
	for _, server := range c.DNS.Nameservers {
		if _, err := netip.ParseAddr(server); err != nil {
			return invalid("dns.nameservers", "%q is not an IP address", server)
		}
	}
	if c.IPAM != nil && c.IPAM.Type != "" {
		return unsupported("ipam", c.IPAM.Type, "contiv-agent allocates the addresses; remove it")
	}
	return nil
}

func unsupported(field, value, fix string) error {
	return types.NewError(types.ErrUnsupportedField,
		fmt.Sprintf("network configuration: %s: %s is not supported: %s", field, value, fix), "")
}

// applyRuntimeConfig applies the values that the runtime passes for the capabilities that the configuration declares. It rejects known
// capabilities that are not supported, so that they do not seem to be in effect.
func (c *config) applyRuntimeConfig() error {
	for _, key := range slices.Sorted(maps.Keys(c.RuntimeConfig)) {
		value := c.RuntimeConfig[key]
		if string(value) == "null" {
			continue
		}
		switch key {
		case "dns":
			dns := struct{ Servers, Searches, Options []string }{}
			if err := json.Unmarshal(value, &dns); err != nil {
				return invalid("runtimeConfig.dns", "%s", err.Error())
			}
			c.DNS = cniapi.DNS{Nameservers: dns.Servers, Search: dns.Searches, Options: dns.Options, Domain: c.DNS.Domain}
		case "ips", "mac", "bandwidth", "infinibandGUID":
			if text := string(value); text != "[]" && text != `""` && text != "{}" {
				return unsupported("runtimeConfig."+key, text, "remove the capability "+key+" from contiv-cni's configuration")
			}
		}
	}
	return nil
}

// validAttachments returns the attachments that GC keeps. The list may be empty, but must exist: without it, GC would remove the network of
// every pod.
func (c *config) validAttachments() (list []types.GCAttachment, err error) {
	const key = "cni.dev/valid-attachments"
	text := c.ValidAttachments
	if text == nil {
		text = c.OldAttachments
	}
	if text == nil {
		return nil, invalid(key, "is missing, GC needs it")
	}
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, invalid(key, "%s", err.Error())
	}
	return list, nil
}

// network returns the part of the configuration that the agent gets.
func (c *config) network() cniapi.Network {
	return cniapi.Network{Name: c.Name, MTU: c.MTU, DNS: c.DNS}
}

// parseArgs reads the pod from CNI_ARGS ("K8S_POD_NAMESPACE=default;K8S_POD_NAME=web") and ignores other keys.
func parseArgs(args string) (cniapi.Pod, error) {
	pod := cniapi.Pod{}
	for pair := range strings.SplitSeq(args, ";") {
		if pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			return pod, types.NewError(types.ErrInvalidEnvironmentVariables, fmt.Sprintf("CNI_ARGS: %q is not KEY=VALUE", pair), "")
		}
		switch key {
		case "K8S_POD_NAMESPACE":
			pod.Namespace = value
		case "K8S_POD_NAME":
			pod.Name = value
		case "K8S_POD_UID":
			pod.UID = value
		}
	}
	if (pod.Name == "") != (pod.Namespace == "") {
		return pod, types.NewError(types.ErrInvalidEnvironmentVariables, "CNI_ARGS: only one of K8S_POD_NAME and K8S_POD_NAMESPACE is set", "")
	}
	return pod, nil
}
