package ucp

import (
	"regexp"
	"slices"

	"commerce/cart/ucp/platform"
)

const (
	cartCapability      = "dev.ucp.shopping.cart"
	discountCapability  = "dev.ucp.shopping.discount"
	permalinkCapability = "dev.ucp.shopping.permalink"
)

// release is a release of the protocol, with what it does not share with the others.
type release struct {
	version    string
	folder     string         // of the page about carts in the specification
	keys       string         // member of profiles with public keys
	domain     *regexp.Regexp // names in reverse-domain form
	context    []string       // texts of context
	extended   bool           // items can have the unit of their quantity, and context the payment handlers that the buyer prefers
	permalinks bool
}

// releases are those that are served, the latest first. A client that names none gets that one.
var releases = []release{
	{
		version: "2026-08-25", folder: "shopping/", keys: "keys",
		domain:   regexp.MustCompile(`^[a-z](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9_-]*[a-z0-9_])?)+$`),
		context:  []string{"address_country", "address_region", "postal_code", "location", "intent", "language", "currency"},
		extended: true, permalinks: true,
	},
	{
		version: "2026-04-08", keys: "signing_keys",
		domain:  regexp.MustCompile(`^[a-z][a-z0-9]*(?:\.[a-z][a-z0-9_]*)+$`),
		context: []string{"address_country", "address_region", "postal_code", "intent", "language", "currency"},
	},
}

// releaseOf returns a release by its version; nil if it is not served.
func releaseOf(version string) *release {
	if i := slices.IndexFunc(releases, func(r release) bool { return r.version == version }); i >= 0 {
		return &releases[i]
	}
	return nil
}

func versions() (all []string) {
	for _, r := range releases {
		all = append(all, r.version)
	}
	return all
}

// capabilities are those of carts. All of a release have its version.
func (r *release) capabilities() map[string][]platform.Capability {
	return map[string][]platform.Capability{
		cartCapability:     {{Version: r.version}},
		discountCapability: {{Version: r.version, Extends: []string{cartCapability}}},
	}
}

func platformReleases() (all []platform.Release) {
	for i := range releases {
		all = append(all, platform.Release{Version: releases[i].version, Capabilities: releases[i].capabilities(), Keys: releases[i].keys})
	}
	return all
}
