package platform

import (
	"cmp"
	"errors"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json"

	"commerce/auth/problem"
)

// Profile is what a platform says about itself. It is shared: do not change it.
type Profile struct {
	Version string // of the protocol

	// Capabilities has only the versions that this service has too, so that a large profile takes no
	// memory. It is empty if Version is not the one that this service speaks.
	Capabilities map[string][]Capability
}

var dated = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// parse reads a profile as far as this service needs it (source/discovery/profile_schema.json of the
// specification). Other releases have other forms, so it reads only the version of those. Payment handlers,
// which the schema requires, do not matter for carts.
func parse(text []byte, ours map[string][]Capability, version string) (*Profile, *problem.Error) {
	var head struct {
		UCP struct {
			Version string `json:"version"`
		} `json:"ucp"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, malformed(err)
	}
	p := &Profile{Version: head.UCP.Version, Capabilities: map[string][]Capability{}}
	if !dated.MatchString(p.Version) {
		return nil, badMember("/ucp/version")
	}
	if p.Version != version {
		return p, nil
	}
	type entry struct {
		Version   string `json:"version"`
		Transport string `json:"transport"`
	}
	var body struct {
		UCP struct {
			Services     map[string][]entry `json:"services"`
			Capabilities map[string][]entry `json:"capabilities"`
		} `json:"ucp"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		return nil, malformed(err)
	}
	if body.UCP.Services == nil {
		return nil, badMember("/ucp/services")
	}
	for _, entries := range body.UCP.Services {
		for _, e := range entries {
			if !dated.MatchString(e.Version) || e.Transport == "" {
				return nil, badMember("/ucp/services")
			}
		}
	}
	for name, entries := range body.UCP.Capabilities {
		for _, e := range entries {
			if !dated.MatchString(e.Version) {
				return nil, badMember("/ucp/capabilities")
			}
			if hasVersion(ours[name], e.Version) && !hasVersion(p.Capabilities[name], e.Version) {
				p.Capabilities[name] = append(p.Capabilities[name], Capability{Version: e.Version})
			}
		}
	}
	return p, nil
}

// malformed returns the fault for a profile that is not JSON, or has a member of the wrong type. The fault is
// cached, so it contains no name that the platform chose.
func malformed(err error) *problem.Error {
	semantic, ok := errors.AsType[*json.SemanticError](err)
	if !ok {
		return errNotJSON
	}
	path := strings.SplitN(string(semantic.JSONPointer), "/", 4)
	return badMember(cmp.Or(strings.Join(path[:min(len(path), 3)], "/"), "/"))
}
