package main

import (
	"net"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/metrics-server/pkg/api"
	generatedopenapi "sigs.k8s.io/metrics-server/pkg/api/generated/openapi"
	"sigs.k8s.io/metrics-server/pkg/scraper/client"
	"sigs.k8s.io/metrics-server/pkg/server"
)

// metricsServer serves what kubelets measure, to whoever asks: its own start knows an older Kubernetes than this one.
func metricsServer() *cobra.Command {
	var kubeconfig, folder string
	command := &cobra.Command{Use: "metrics-server", RunE: func(*cobra.Command, []string) error {
		config := genericapiserver.NewConfig(api.Codecs)
		config.EffectiveVersion = compatibility.DefaultBuildEffectiveVersion()
		definitions, namer := generatedopenapi.GetOpenAPIDefinitions, openapinamer.NewDefinitionNamer(api.Scheme)
		config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
		config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)

		secure := genericoptions.NewSecureServingOptions().WithLoopback()
		secure.BindPort = 4443
		secure.ServerCert.CertDirectory = folder
		if err := secure.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
			return err
		}
		if err := secure.ApplyTo(&config.SecureServing, &config.LoopbackClientConfig); err != nil {
			return err
		}
		apiServer, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
		if err != nil {
			return err
		}
		kubelet := rest.CopyConfig(apiServer)
		kubelet.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
		all, err := server.Config{
			Apiserver: config,
			Rest:      apiServer,
			Kubelet: &client.KubeletClientConfig{
				Client: *kubelet, Scheme: "https", DefaultPort: 10250,
				AddressTypePriority: []corev1.NodeAddressType{corev1.NodeInternalIP},
			},
			MetricResolution: 10 * time.Second,
			ScrapeTimeout:    5 * time.Second,
		}.Complete()
		if err != nil {
			return err
		}
		return all.RunUntil(genericapiserver.SetupSignalHandler())
	}}
	command.Flags().StringVar(&kubeconfig, "kubeconfig", "", "how to reach the API server and the kubelet")
	command.Flags().StringVar(&folder, "cert-dir", "", "where its own certificate is put")
	return command
}
