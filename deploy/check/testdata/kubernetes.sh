#!/bin/sh
# Writes kubernetes.json again, from the module of the oldest version that docs/deploy.md names.
set -eu
cd "$(dirname "$0")"
version=v1.30.0
kubernetes=$(go mod download -json "k8s.io/kubernetes@$version" | jq -r .Dir)
kinds="apps.v1.Deployment autoscaling.v2.HorizontalPodAutoscaler batch.v1.CronJob batch.v1.Job core.v1.ConfigMap
	core.v1.Namespace core.v1.Service core.v1.ServiceAccount networking.v1.Ingress networking.v1.NetworkPolicy
	policy.v1.PodDisruptionBudget"
# shellcheck disable=SC2086 # the kinds are separate arguments
jq -r --arg version "$version" --arg names "$(printf 'io.k8s.api.%s\n' $kinds | paste -sd ' ')" -f kubernetes.jq \
	"$kubernetes/api/openapi-spec/swagger.json" >kubernetes.json
