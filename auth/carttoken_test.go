package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"commerce/deploy/assert"
)

func TestNewCartToken_IsValidAndDependsOnlyOnItsSource(t *testing.T) {
	t.Parallel()
	token := must(NewCartToken(bytes.NewReader(bytes.Repeat([]byte{0xfb}, 16))))
	assert.Equal(t, token.Reveal(), "-_v7-_v7-_v7-_v7-_v7-w", "token.Reveal()")
	_, ok := ParseCartToken(token.Reveal())
	assert.That(t, ok, "a new token is not valid")
	other, _ := NewCartToken(rand.Reader)
	assert.That(t, other != token, "two sources gave the same token")
}

func TestNewCartToken_RefusesAShortSource(t *testing.T) {
	t.Parallel()
	broken := errors.New("no entropy")
	token, err := NewCartToken(iotest.ErrReader(broken))
	assert.That(t, errors.Is(err, broken) && token == "", "got %q, %v, want the source's error", token.Reveal(), err)
	_, err = NewCartToken(strings.NewReader("fifteen letters"))
	assert.That(t, errors.Is(err, io.ErrUnexpectedEOF), "got %v, want %v", err, io.ErrUnexpectedEOF)
}

func TestCartToken_Digest(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte(guestToken))
	want := base64.RawURLEncoding.EncodeToString(sum[:16])
	got := CartToken(guestToken).Digest()
	assert.That(t, got == want && len(got) == 22, "got %s, want %s", got, want)
}

func TestCartToken_IsNeverPrinted(t *testing.T) {
	t.Parallel()
	token := CartToken(guestToken)
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewJSONHandler(&log, nil), slog.NewTextHandler(&log, nil)} {
		slog.New(h).Info("seen", "token", token, "caller", Caller{Token: token}, "caller", &Caller{Token: token})
	}
	marshaled := must(json.Marshal([]any{token, Caller{Token: token}}))
	shown := map[string]string{"log": log.String(), "json": string(marshaled), "String": token.String()}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s"} {
		shown[verb] = fmt.Sprintf(verb+verb, token, Caller{Token: token})
	}
	for how, s := range shown {
		assert.That(t, !strings.Contains(s, guestToken) && !strings.Contains(strings.ToLower(s), fmt.Sprintf("%x", guestToken)),
			"%s shows the token: %s", how, s)
		assert.That(t, strings.Contains(s, hiddenCartToken), "%s does not say that a token was there: %s", how, s)
	}
}

func TestCustomerKey_PlainSubjectIsItsOwnKey(t *testing.T) {
	t.Parallel()
	for _, sub := range []string{"1", "1001", "a_B-9", strings.Repeat("x", 64)} {
		assert.Equal(t, CustomerKey(sub), sub, "CustomerKey(%q)", sub)
	}
}

func TestCustomerKey_DiffersForDifferentSubjects(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`\A([A-Za-z0-9_-]{1,64}|~[A-Za-z0-9_-]{22})\z`)
	subject := rapid.OneOf(rapid.StringMatching(`[A-Za-z0-9_~-]{0,70}`), rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		a, b := subject.Draw(t, "a"), subject.Draw(t, "b")
		if rapid.Bool().Draw(t, "imitate") {
			b = CustomerKey(a)
		}
		if !form.MatchString(CustomerKey(a)) {
			t.Fatalf("CustomerKey(%q) = %q is not a safe key", a, CustomerKey(a))
		}
		if a != b && CustomerKey(a) == CustomerKey(b) {
			t.Fatalf("%q and %q share %q", a, b, CustomerKey(a))
		}
	})
}
