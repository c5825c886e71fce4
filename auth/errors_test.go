package auth

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
	"unicode"

	"commerce/auth/locale"
	"commerce/auth/problem"
)

// refusals are all errors of this package, as TestErrors_AllAreListed checks.
var refusals = map[string]*problem.Error{
	"errStoreRequired": errStoreRequired, "errStoreUnknown": errStoreUnknown,
	"errTokenStoreUnknown": errTokenStoreUnknown, "errPublicKeyRepeated": errPublicKeyRepeated,
	"errBearerMalformed": errBearerMalformed, "errNoCustomers": errNoCustomers,
	"errTokenMalformed": errTokenMalformed, "errTokenType": errTokenType,
	"errTokenSignature": errTokenSignature, "errTokenKeyUnknown": errTokenKeyUnknown,
	"errTokenExpired": errTokenExpired, "errTokenNotYetValid": errTokenNotYetValid,
	"errTokenIssuer": errTokenIssuer, "errTokenAudience": errTokenAudience,
	"errTokenClaimMissing": errTokenClaimMissing, "errTokenSubject": errTokenSubject,
	"errTokenStoreID": errTokenStoreID, "errTokenNamesNoStore": errTokenNamesNoStore,
	"errOtherStore": errOtherStore, "errAPITokenMissing": errAPITokenMissing,
	"errAPITokenMalformed": errAPITokenMalformed, "errAPITokenUnknown": errAPITokenUnknown,
	"errAPITokenRevoked": errAPITokenRevoked, "errAPITokenSecret": errAPITokenSecret,
}

func TestErrors_AllAreListed(t *testing.T) {
	t.Parallel()
	file := must(parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0))
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "err") {
			if refusals[spec.Names[0].Name] == nil {
				t.Errorf("%s is not in the list", spec.Names[0].Name)
			}
		}
		return true
	})
}

func TestErrors_HaveSentencesInBothLanguages(t *testing.T) {
	t.Parallel()
	codes := []problem.Code{"store_required", "store_unknown", "unauthenticated", "unavailable", "invalid_parameter"}
	all := []*problem.Error{unavailable(errors.New("down"))}
	for _, e := range refusals {
		all = append(all, e)
	}
	for _, e := range all {
		if !slices.Contains(codes, e.Code) {
			t.Errorf("%v has the unknown code %q", e, e.Code)
		}
		if isArabic(e.Message(locale.En)) || !isArabic(e.Message(locale.Ar)) {
			t.Errorf("%v lacks one of the languages", e)
		}
		for _, l := range []locale.Locale{locale.En, locale.Ar} {
			if !strings.HasSuffix(e.Message(l), ".") {
				t.Errorf("%q is not a sentence", e.Message(l))
			}
		}
		if (e.Code == "unauthenticated") != slices.Contains(CredentialKinds(), e.Kind) {
			t.Errorf("%v has the kind %q", e, e.Kind)
		}
		if e.Code == "unauthenticated" && e.Faults[0].Member != "Authorization" {
			t.Errorf("%v names the member %q", e, e.Faults[0].Member)
		}
	}
}

func isArabic(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.Is(unicode.Arabic, r) })
}

func TestError_UnwrapsToItsCause(t *testing.T) {
	t.Parallel()
	down := errors.New("connection refused")
	if e := unavailable(down); !errors.Is(e, down) || !strings.Contains(e.Error(), down.Error()) {
		t.Errorf("%v hides its cause", e)
	}
}
