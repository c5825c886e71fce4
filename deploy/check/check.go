// Package check tests the files from which the service is deployed: the image, the
// manifests, the unit and the configurations of the servers. It is a module of its own, so
// that the service does not depend on the libraries of Kubernetes, BuildKit and Compose.
package check
