// Every program of a Kubernetes cluster in one binary, because they share most of their packages: one link, one file to
// keep, and memory that they share. The name it is called by, or else the first argument, says which program it is.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	programs := map[string]func(){
		"etcd":                    func() { etcdmain.Main(os.Args) },
		"coredns":                 coremain.Run,
		"kube-apiserver":          running(func() *cobra.Command { return apiserver.NewAPIServerCommand() }),
		"kube-controller-manager": running(func() *cobra.Command { return manager.NewControllerManagerCommand() }),
		"kube-scheduler":          running(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
		"kube-proxy":              running(func() *cobra.Command { return proxy.NewProxyCommand() }),
		"kubelet":                 running(func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) }),
		"kubectl":                 running(func() *cobra.Command { return kubectl.NewDefaultKubectlCommand() }),
		"metrics-server":          running(metricsServer),
	}
	program, known := programs[filepath.Base(os.Args[0])]
	if !known && len(os.Args) > 1 {
		os.Args = os.Args[1:]
		program, known = programs[os.Args[0]]
	}
	if !known {
		fmt.Fprintln(os.Stderr, "the first argument is none of: etcd, coredns, kubectl, kubelet, kube-..., metrics-server")
		os.Exit(2)
	}
	program()
}

func running(command func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(command())) }
}
