package platform

import (
	"cmp"
	"errors"
	"regexp"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"commerce/auth/problem"
)

// Profile is what a platform says about itself. It is shared: do not change it.
type Profile struct {
	Version string // of the protocol

	// Capabilities has only the versions that this service has too, so that a large profile takes no
	// memory. It is empty if this service does not speak Version.
	Capabilities map[string][]Capability
}

// Release is a release of the protocol that this service speaks.
type Release struct {
	Version      string
	Capabilities map[string][]Capability // of this service, by name
	Keys         string                  // member of a profile that has the public keys of its owner
}

var dated = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`)

// parse reads a profile as far as this service needs it (source/schemas/profile.json of the specification). Releases that
// it does not speak have other forms, so it reads only the version of those. Payment handlers, which the schema
// requires, do not matter for carts.
func parse(text []byte, releases []Release) (*Profile, *problem.Error) {
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
	at := slices.IndexFunc(releases, func(r Release) bool { return r.Version == p.Version })
	if at < 0 {
		return p, nil
	}
	spoken := releases[at]
	type entry struct {
		Version   string `json:"version"`
		Transport string `json:"transport"`
	}
	var body struct {
		UCP struct {
			Services     map[string][]entry `json:"services"`
			Capabilities map[string][]entry `json:"capabilities"`
		} `json:"ucp"`
		Rest map[string]jsontext.Value `json:",embed"`
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
			if hasVersion(spoken.Capabilities[name], e.Version) && !hasVersion(p.Capabilities[name], e.Version) {
				p.Capabilities[name] = append(p.Capabilities[name], Capability{Version: e.Version})
			}
		}
	}
	if keys := body.Rest[spoken.Keys]; keys != nil && !areKeys(keys) {
		return nil, badMember("/" + spoken.Keys)
	}
	return p, nil
}

// areKeys reports whether a list has public keys (RFC 7517), which this service does not use. Their types are open.
func areKeys(list jsontext.Value) bool {
	type key struct {
		ID   string `json:"kid"`
		Type string `json:"kty"`
	}
	var keys []key
	err := json.Unmarshal(list, &keys)
	return err == nil && !slices.ContainsFunc(keys, func(k key) bool { return k.ID == "" || k.Type == "" })
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
