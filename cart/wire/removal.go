package wire

import "time"

// Removal announces that a route will be removed. All its responses have the headers
// Deprecation (RFC 9745) and Sunset (RFC 8594). docs/changelog.md has the rule.
type Removal struct {
	Deprecated time.Time // when it was announced
	Sunset     time.Time // until when the route works
}
