// Package check tests the files that deploy the service: the image, the manifests, the systemd
// units and the configurations of the servers. It is a separate module, so that the service does
// not depend on the libraries of BuildKit and Compose.
package check
