package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"contiv.dev/vswitch/internal/clusterdb"
	"contiv.dev/vswitch/internal/daemon"
	"contiv.dev/vswitch/internal/httpapi"
	"contiv.dev/vswitch/internal/kube"
)

// options holds the agent's flags.
type options struct {
	config string
	// controllerConfig is the path of controller.conf.
	controllerConfig string
	nodeName         string
	runDir           string
	dataDir          string
	dataplane        string
	vppSocket        string
	cniSocket        string
	http             httpapi.Config
	logLevel         string
	etcd             clusterdb.Config
	warmPool         int
	filter           string
	linuxNames       string
	invalidPass      bool
	verify           bool
	diag             diagOptions

	kubernetes kubernetesOptions
	services   serviceOptions
	watch      watchOptions

	platformOptions
}

const (
	dataplaneAuto    = "auto"
	dataplaneVPP     = "vpp"
	dataplaneLinux   = "linux"
	dataplaneFake    = "fake"
	dataplaneWindows = "windows"
)

// usesVPP reports whether VPP, or its fake, moves the packets.
func (o *options) usesVPP() bool { return o.dataplane == dataplaneVPP || o.dataplane == dataplaneFake }

// The naming schemes of the Linux driver's chains and metrics.
const (
	linuxNamesContiv = "contiv"
	linuxNamesFelix  = "felix"
)

func defaultOptions() *options {
	return &options{
		nodeName: os.Getenv("MICROSERVICE_LABEL"), runDir: defaultRunDir, dataDir: defaultDataDir,
		dataplane: dataplaneAuto, vppSocket: "/run/vpp/api.sock", http: httpapi.Config{Address: "127.0.0.1:9999"}, logLevel: "info",
		warmPool: 8, kubernetes: kubernetesOptions{mode: kubernetesAuto},
	}
}

func (o *options) register(f *pflag.FlagSet) {
	f.StringVar(&o.config, "config", o.config, "contiv.conf; without it, all defaults apply")
	f.StringVar(&o.controllerConfig, "controller-config", "", "controller.conf: retries, healing and the event history; without it, "+
		"all defaults apply")
	f.StringVar(&o.nodeName, "node-name", o.nodeName, "name of this node (default: MICROSERVICE_LABEL, otherwise the host name)")
	f.StringVar(&o.runDir, "run-dir", o.runDir, "directory of sockets and of the records of attached pods; must be empty after a reboot")
	f.StringVar(&o.dataDir, "data-dir", o.dataDir, "directory of the embedded etcd and of the local copy of the cluster's state")
	f.StringVar(&o.dataplane, "dataplane", o.dataplane, "vpp, linux (the kernel's own stack), windows (its network service), "+
		"fake (for trials: forwards no packets), or auto: windows on Windows, vpp if its socket exists, otherwise linux")
	f.StringVar(&o.vppSocket, "vpp-socket", o.vppSocket, "VPP's binary API socket")
	f.StringVar(&o.cniSocket, "cni-socket", o.cniSocket, "socket for contiv-cni (default: <run-dir>/cni.sock)")
	o.http.RegisterFlags(f, "the REST API")
	o.diag.register(f)
	o.etcd.RegisterFlags(f, "external etcd, comma separated; without it, the agent embeds an etcd")
	f.IntVar(&o.warmPool, "warm-pool", o.warmPool, "number of VETH pairs that are kept ready, with VPP attached, for new pods with VETH (0: none)")
	f.StringVar(&o.filter, "linux-backend", "auto", "packet filter of --dataplane linux: nft, iptables, or auto")
	f.StringVar(&o.linuxNames, "linux-names", linuxNamesContiv, "names of the chains and metrics of --dataplane linux: contiv (contiv-*, "+
		"contiv_linux_*), or felix (cali-*, felix_*), for tools that support Felix. A change takes effect at the next start and removes the chains "+
		"of the other names")
	f.BoolVar(&o.invalidPass, "disable-conntrack-invalid-check", false, "with --dataplane linux, network policy is applied to packets whose state "+
		"in connection tracking is INVALID, instead of dropping them; for networks in which replies take another path. A TCP connection that "+
		"policy has ended may then continue if its other end may connect")
	f.StringVar(&o.kubernetes.mode, "kubernetes", o.kubernetes.mode, "watch the Kubernetes API server, for services: on, off, or auto: "+
		"with a kubeconfig or in a pod with a service account; relay: watch etcd instead, to which contiv-ksr writes")
	o.kubernetes.api.RegisterFlags(f)
	o.services.register(f)
	o.registerPlatform(f)
	o.watch.register(f)
	f.BoolVar(&o.verify, "verify", false, "after each event, compare the result with a recomputation from scratch (slow, for tests)")
	daemon.RegisterLogLevel(f, &o.logLevel)
}

// complete sets the options that depend on others and checks all of them.
func (o *options) complete() error {
	var errs []error
	if o.nodeName == "" {
		name, err := defaultNodeName()
		errs = append(errs, err)
		o.nodeName = name
	}
	if o.cniSocket == "" {
		o.cniSocket = filepath.Join(o.runDir, "cni.sock")
	}
	switch o.dataplane {
	case dataplaneAuto:
		o.dataplane = o.findDataplane()
	case dataplaneVPP, dataplaneLinux, dataplaneFake, dataplaneWindows:
	default:
		errs = append(errs, fmt.Errorf("--dataplane %q: use vpp, linux, windows, fake or auto", o.dataplane))
	}
	switch o.filter {
	case "auto", "nft", "iptables":
	default:
		errs = append(errs, fmt.Errorf("--linux-backend %q: use nft, iptables or auto", o.filter))
	}
	switch o.linuxNames {
	case linuxNamesContiv, linuxNamesFelix:
	default:
		errs = append(errs, fmt.Errorf("--linux-names %q: use contiv or felix", o.linuxNames))
	}
	if o.warmPool < 0 || o.warmPool > 256 {
		errs = append(errs, fmt.Errorf("--warm-pool %d: must be from 0 to 256", o.warmPool))
	}
	errs = append(errs, o.kubernetes.complete(), o.services.complete(), o.completeEtcd(), o.check())
	dirs := []struct{ flag, path string }{{"run-dir", o.runDir}, {"data-dir", o.dataDir}}
	for _, dir := range dirs {
		if !filepath.IsAbs(dir.path) {
			errs = append(errs, fmt.Errorf("--%s %q: must be an absolute path", dir.flag, dir.path))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := makePrivateDir(dir.path); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", dir.flag, err))
		}
	}
	return errors.Join(errs...)
}

// completeEtcd checks for errors that would otherwise appear only when the database is opened.
func (o *options) completeEtcd() error {
	o.etcd.Embedded.DataDir = filepath.Join(o.dataDir, "etcd")
	var service error
	if o.etcd.Service != "" {
		if _, _, _, err := kube.ParseService(o.etcd.Service); err != nil {
			service = fmt.Errorf("--etcd-service: %w", err)
		}
	}
	return errors.Join(o.checkRelay(), o.etcd.Validate(), service)
}

func (o *options) checkRelay() error {
	if o.kubernetes.mode == kubernetesRelay && o.etcd.UsesEmbedded() {
		return errors.New("--kubernetes=relay needs the etcd that contiv-ksr writes to: set --etcd-endpoints")
	}
	return nil
}
