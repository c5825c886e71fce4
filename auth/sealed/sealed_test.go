package sealed

import (
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"commerce/deploy/assert"
)

var (
	first  = strings.Repeat("a", 32)
	second = strings.Repeat("b", 40)
)

func keys(t *testing.T, current, previous string) *Keys {
	t.Helper()
	return assert.Must(New(current, previous))(t)
}

func TestNew_RefusesWeakKeys(t *testing.T) {
	t.Parallel()
	short := first[1:]
	for _, pair := range [][2]string{{short, ""}, {first, short}, {short, first}, {"", first}} {
		_, err := New(pair[0], pair[1])
		assert.That(t, err != nil, "accepts %q and %q", pair[0], pair[1])
		assert.That(t, err == nil || !strings.Contains(err.Error(), "aaa"), "the error shows a key: %v", err)
	}
}

// Names, sums and codes under a key stay the same in later releases.
func TestKeys_StayTheSameInAllReleases(t *testing.T) {
	t.Parallel()
	k := keys(t, first, second)
	assert.Equal(t, k.Name(), "89CJ", "name")
	assert.Equal(t, k.Previous(), "c5He", "previous name")
	sum, _ := k.Derive(k.Name(), "label", "one", "two")
	assert.Equal(t, hex.EncodeToString(sum[:]), "b482fe169a1e50244066670b547d796ea9fcf79443b05d5a9ba58a7a359f29e6", "sum")
	text, ok := k.Open("purpose", "89CJ_ji6Vrgt52DSAwVup2o-_hm7vzG1lNV8OHjZ_G5Jpza6Ct_m")
	assert.That(t, ok && string(text) == "text", "an old code opens as %q, %t", text, ok)
}

func TestNil_HasNoKey(t *testing.T) {
	t.Parallel()
	k := keys(t, "", "")
	assert.That(t, k == nil, "without a key: %v", k)
	assert.Equal(t, k.Name()+k.Previous(), "", "names")
	_, ok := k.Derive("", "label")
	assert.That(t, !ok, "derives without a key")
	_, ok = k.Open("purpose", "")
	assert.That(t, !ok, "opens without a key")
}

func TestDerive_DependsOnEverything(t *testing.T) {
	t.Parallel()
	k := keys(t, first, second)
	seen := map[[32]byte]bool{}
	for _, name := range []string{k.Name(), k.Previous()} {
		for _, label := range []string{"one", "two"} {
			for _, parts := range [][]string{nil, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"", "ab"}, {"ab", ""}} {
				sum, ok := k.Derive(name, label, parts...)
				assert.That(t, ok && !seen[sum], "%s %s %q: %t, seen before: %t", name, label, parts, ok, seen[sum])
				again, _ := k.Derive(name, label, parts...)
				assert.That(t, again == sum, "%s %s %q differs the second time", name, label, parts)
				seen[sum] = true
			}
		}
	}
	_, ok := k.Derive("none", "one")
	assert.That(t, !ok, "derives under an unknown key")
}

func TestDerive_UnderThePreviousKeyIsWhatItWas(t *testing.T) {
	t.Parallel()
	before := keys(t, first, "")
	after := keys(t, second, first)
	was, _ := before.Derive(before.Name(), "label", "part")
	is, ok := after.Derive(before.Name(), "label", "part")
	assert.That(t, ok && is == was, "another sum after the keys changed")
	assert.That(t, after.Name() != before.Name() && after.Previous() == before.Name(), "names: %s, then %s and %s",
		before.Name(), after.Name(), after.Previous())
	assert.That(t, keys(t, first, first).Previous() == "", "one key is its own previous one")
}

func TestOpen_ReadsWhatWasSealed(t *testing.T) {
	t.Parallel()
	before := keys(t, first, "")
	for _, text := range []string{"", "text", strings.Repeat("x", 10_000)} {
		sealed := before.Seal("purpose", []byte(text))
		assert.That(t, regexp.MustCompile(`^[A-Za-z0-9]{4}[A-Za-z0-9_-]+$`).MatchString(sealed) && sealed[:4] == before.Name(), "seals %q", sealed)
		for _, k := range []*Keys{before, keys(t, second, first)} {
			opened, ok := k.Open("purpose", sealed)
			assert.That(t, ok && string(opened) == text, "opens %q, %t", opened, ok)
		}
		assert.That(t, before.Seal("purpose", []byte(text)) != sealed, "seals a text twice alike")
	}
}

func TestOpen_RefusesAnythingElse(t *testing.T) {
	t.Parallel()
	k := keys(t, first, second)
	sealed := k.Seal("purpose", []byte("text!")) // the last character of its base64 has unused bits
	refused := func(purpose, sealed, why string) {
		t.Helper()
		text, ok := k.Open(purpose, sealed)
		assert.That(t, !ok && text == nil, "%s: opens %q", why, text)
	}
	refused("other", sealed, "another purpose")
	refused("purpose", k.Previous()+sealed[4:], "another key's name")
	refused("purpose", keys(t, strings.Repeat("c", 32), "").Seal("purpose", []byte("text")), "an unknown key")
	for i := range sealed {
		refused("purpose", sealed[:i], "cut")
		for _, c := range []byte("AB_\n=é") {
			if sealed[i] != c {
				refused("purpose", sealed[:i]+string(c)+sealed[i+1:], "a changed character")
			}
		}
		refused("purpose", sealed[:i]+"\n"+sealed[i:], "a line break")
	}
	for c := range byte(128) {
		if sealed[len(sealed)-1] != c {
			refused("purpose", sealed[:len(sealed)-1]+string(c), "another last character")
		}
		refused("purpose", sealed+string(c), "a character more")
	}
}
