//go:build !race

package locale_test

import (
	"testing"

	"commerce/auth/locale"
	"commerce/deploy/assert"
)

// A sentence about a product without translations is as cheap as one about a text.
// The race detector allocates at random: it makes sync.Pool drop values.
func TestSentence_ResolvesOnlyTranslatedNames(t *testing.T) {
	left := locale.Text{locale.En: "%d of “%s” left."}
	text, name := left.With(3, "Box"), left.With(3, locale.Named("Box"))
	plain := testing.AllocsPerRun(100, func() { _ = text.In(locale.En) })
	named := testing.AllocsPerRun(100, func() { _ = name.In(locale.En) })
	assert.That(t, named <= plain, "%v allocations with a name, %v with a text", named, plain)
}
