package platform

import (
	"maps"
	"slices"
)

// Capability is one version of a capability in a profile, whose registry has its name.
type Capability struct {
	Version string   // YYYY-MM-DD
	Extends []string // the capabilities that it adds to; none: it is no extension
}

// Negotiate returns the capabilities that both sides support, each in the latest version of both. It
// leaves out extensions without an active parent. The specification calls it the intersection
// algorithm. Only ours defines the parents of an extension.
func Negotiate(ours, theirs map[string][]Capability) map[string]Capability {
	active := map[string]Capability{}
	for name, versions := range ours {
		for _, c := range versions {
			if hasVersion(theirs[name], c.Version) && c.Version > active[name].Version {
				active[name] = c
			}
		}
	}
	for before := -1; before != len(active); { // an extension can extend an extension
		before = len(active)
		maps.DeleteFunc(active, func(_ string, c Capability) bool {
			return len(c.Extends) > 0 && !slices.ContainsFunc(c.Extends, func(parent string) bool {
				_, there := active[parent]
				return there
			})
		})
	}
	return active
}

func hasVersion(versions []Capability, version string) bool {
	return slices.ContainsFunc(versions, func(c Capability) bool { return c.Version == version })
}
