package auth

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"commerce/deploy/assert"
)

// TestTexts in cmd/commerce checks that no language is missing.
func TestErrors_AreSentencesInTheirLanguage(t *testing.T) {
	t.Parallel()
	texts := regexp.MustCompile(`locale\.(En|Ar): "(.*)",`).FindAllStringSubmatch(string(must(os.ReadFile("errors.go"))), -1)
	for _, text := range texts {
		isArabic := strings.ContainsFunc(text[2], func(r rune) bool { return unicode.Is(unicode.Arabic, r) })
		assert.That(t, isArabic == (text[1] == "Ar") && strings.HasSuffix(text[2], "."),
			"not a sentence in %s: %q", text[1], text[2])
	}
	assert.That(t, len(texts) >= 40, "found %d texts: this test does not read all", len(texts))
}

func TestErrors_HaveTheKindsOfRefusedCredentials(t *testing.T) {
	t.Parallel()
	var used []string
	for _, call := range regexp.MustCompile(`unauthenticated\("(\w+)"`).FindAllStringSubmatch(string(must(os.ReadFile("errors.go"))), -1) {
		used = append(used, call[1])
	}
	slices.Sort(used)
	listed := slices.Sorted(slices.Values(CredentialKinds()))
	assert.That(t, slices.Equal(slices.Compact(used), listed), "kinds %v, listed are %v", used, listed)
	e := unauthenticated("type", nil)
	assert.That(t, e.Code == "unauthenticated" && e.Kind == "type" && e.Faults[0].Member == "Authorization", "got %+v", e)
}
