// One binary for the control plane of the conformance suite: the first argument picks the component.
// "certificate DIR" writes the certificate by which all of them are known on loopback.
package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/cert"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// Built only when picked: two of them claim the process's signal handler as soon as they exist.
var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
	"certificate":             certificate,
}

func main() {
	if len(os.Args) < 2 || components[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: controlplane kube-apiserver|kube-controller-manager|kube-scheduler|kubectl|certificate [argument...]")
		os.Exit(2)
	}
	component := os.Args[1]
	os.Args = append([]string{component}, os.Args[2:]...)
	os.Exit(cli.Run(components[component]()))
}

func certificate() *cobra.Command {
	return &cobra.Command{
		Use:  "certificate DIR",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			loopback := []net.IP{net.IPv4(127, 0, 0, 1)}
			chain, key, err := cert.GenerateSelfSignedCertKey("localhost", loopback, nil)
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(args[0], "tls.crt"), chain, 0o600); err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(args[0], "tls.key"), key, 0o600)
		},
	}
}
