package platform

import (
	"testing"

	"commerce/deploy/assert"
)

// The cases follow the specification: overview, "Intersection Algorithm".
func TestNegotiate_IsTheIntersection(t *testing.T) {
	t.Parallel()
	const cart, checkout, discount, points = "dev.ucp.shopping.cart", "dev.ucp.shopping.checkout", "dev.ucp.shopping.discount", "com.example.points"
	type registry = map[string][]Capability
	of := func(versions ...string) (all []Capability) {
		for _, v := range versions {
			all = append(all, Capability{Version: v})
		}
		return all
	}
	extending := func(version string, parents ...string) []Capability { return []Capability{{version, parents}} }
	const old, now, next = "2026-01-23", "2026-04-08", "2026-10-01"
	for name, c := range map[string]struct {
		ours, theirs registry
		want         map[string]string
	}{
		"none":                         {},
		"the same":                     {registry{cart: of(now)}, registry{cart: of(now)}, map[string]string{cart: now}},
		"only ours":                    {registry{cart: of(now)}, registry{checkout: of(now)}, nil},
		"only theirs":                  {registry{}, registry{cart: of(now)}, nil},
		"an empty array":               {registry{cart: of(now)}, registry{cart: {}}, nil},
		"no mutual version":            {registry{cart: of(now)}, registry{cart: of(old, next)}, nil},
		"the latest mutual version":    {registry{cart: of(old, now, next)}, registry{cart: of(now, old)}, map[string]string{cart: now}},
		"the latest, in another order": {registry{cart: of(next, old, now)}, registry{cart: of(old, now)}, map[string]string{cart: now}},
		"an extension":                 {registry{cart: of(now), discount: extending(now, cart)}, registry{cart: of(now), discount: of(now)}, map[string]string{cart: now, discount: now}},
		"an extension of another":      {registry{cart: of(now), discount: extending(now, cart)}, registry{discount: of(now)}, nil},
		"its parent has no mutual version": {
			registry{cart: of(now), discount: extending(now, cart)}, registry{cart: of(old), discount: of(now)}, nil,
		},
		"one of its parents": {
			registry{cart: of(now), discount: extending(now, checkout, cart)},
			registry{cart: of(now), discount: of(now)},
			map[string]string{cart: now, discount: now},
		},
		"none of its parents": {
			registry{cart: of(now), points: of(now), discount: extending(now, checkout, cart)},
			registry{points: of(now), discount: of(now)},
			map[string]string{points: now},
		},
		"an extension of an extension": {
			registry{cart: of(now), discount: extending(now, cart), points: extending(now, discount)},
			registry{cart: of(now), discount: of(now), points: of(now)},
			map[string]string{cart: now, discount: now, points: now},
		},
		"a chain without its root": {
			registry{cart: of(now), discount: extending(now, cart), points: extending(now, discount)},
			registry{discount: of(now), points: of(now)},
			nil,
		},
		"their parents do not count": {
			registry{cart: of(now), discount: extending(now, cart)},
			registry{cart: of(now), discount: extending(now, checkout)},
			map[string]string{cart: now, discount: now},
		},
		"only one version is an extension": {
			registry{discount: append(of(old), extending(now, cart)...)},
			registry{discount: of(old)},
			map[string]string{discount: old},
		},
	} {
		got := map[string]string{}
		for name, c := range Negotiate(c.ours, c.theirs) {
			got[name] = c.Version
		}
		if c.want == nil {
			c.want = map[string]string{}
		}
		assert.Equal(t, got, c.want, "%s", name)
	}
}
